// Judges reception: which hosts receive from which, and losses.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "hearing.h"

namespace mcastcoll::doctor {
namespace {

const char* const kServed =
    "Other hosts send point-to-point messages instead, which makes collectives slower.";

std::string kernel_refuses(const std::string& error) {
    return fmt::format("The kernel refuses to send them ({}): a firewall blocks them, or there is no route.",
                       error);
}

}  // namespace

Finding of_rule(const Firewall::Rule& rule, Severity severity, std::string title, std::string cost) {
    return {"firewall",
            severity,
            std::move(title),
            fmt::format("The firewall: {}.", rule.text),
            std::move(cost),
            rule.removal,
            {}};
}

Hearing::Hearing(Judging& judging)
    : judging_(judging), heard_(judging.facts().hosts.size()), speakers_(judging.speakers()) {
    for (const unsigned to : speakers_) {
        heard_[to].resize(heard_.size() * kPhases);
        for (const Heard& heard : judging_.host(to).heard)
            if (heard.from < heard_.size())
                heard_[to][heard.from * kPhases + static_cast<std::size_t>(heard.phase)] = &heard;
    }
}

Count Hearing::count(unsigned from, unsigned to, std::initializer_list<Phase> phases) const {
    Count count;
    for (const Phase phase : phases) {
        for (const Stream& stream : judging_.host(from).sent)
            if (stream.phase == phase) count.sent += stream.datagrams;
        const Heard* const heard = heard_[to][from * kPhases + static_cast<std::size_t>(phase)];
        if (heard == nullptr) continue;
        count.got += heard->datagrams;
        count.twice += heard->duplicates;
        count.late += heard->late;
        count.gap = std::max(count.gap, heard->longest_gap);
    }
    return count;
}

Count Hearing::count_from_all(unsigned to, std::initializer_list<Phase> phases) const {
    Count sum;
    for (const unsigned from : speakers_) {
        if (from == to || !hears(to, from)) continue;
        const Count one = count(from, to, phases);
        sum = {sum.sent + one.sent, sum.got + one.got, sum.twice + one.twice, sum.late + one.late,
               std::max(sum.gap, one.gap)};
    }
    return sum;
}

std::string Hearing::refusal(unsigned at) const {
    std::string refused;
    for (const Stream& stream : judging_.host(at).sent)
        refused = stream.error.empty() ? refused : stream.error;
    return refused;
}

const Firewall::Rule* Hearing::rule(unsigned at, bool outgoing, bool surely) const {
    const Firewall::Rule* found = nullptr;
    for (const Firewall::Rule& rule : judging_.host(at).firewall.rules)
        if (rule.outgoing == outgoing && (!surely || rule.names_multicast) &&
            (found == nullptr || (rule.names_multicast && !found->names_multicast)))
            found = &rule;
    return found;
}

void Hearing::judge() {
    if (speakers_.empty() || judging_.found("address-shared")) return;
    if (speakers_.size() == 1) return judge_alone();
    split();
    if (all_deaf_) return find_nobody_hears();
    for (const unsigned i : deaf_) find_deaf(i);
    for (const unsigned i : mute_) find_mute(i);
    find_missing_pairs();
    if (pairs_heard_ == 0) return;
    judge_full_size();
    judge_again();
    judge_losses();
    judge_order();
    if (deaf_.empty() && mute_.empty() && !judging_.found("path-broken"))
        judging_.fine(fmt::format("each of {} hosts receives from every other host{}", speakers_.size(),
                                  judging_.found("subnets-differ") ? " of its subnet" : ""));
}

// For a single host: whether its multicasts return to the host.
void Hearing::judge_alone() {
    const unsigned self = speakers_.front();
    const Count own = count(self, self, {Phase::small});
    const char* const cost = "Collectives between hosts use point-to-point messages.";
    const std::string refused = refusal(self);
    if (own.got == 0 && (own.sent > 0 || !refused.empty())) {
        // If the kernel refuses to send, the rule is in an output chain.
        for (const bool outgoing : {!refused.empty(), refused.empty()})
            if (const Firewall::Rule* found = rule(self, outgoing))
                return judging_.find(
                    of_rule(*found, Severity::broken, "The firewall drops multicasts.", cost), {self});
        return judging_.find(
            {"self-deaf",
             Severity::broken,
             "This host does not receive its own multicasts.",
             refused.empty() ? std::string("No firewall rule that drops them was found; the interface, or "
                                           "its attachment to a bridge, does not carry multicast.")
                             : kernel_refuses(refused),
             cost,
             "Try another interface: FI_MCASTCOLL_IFACE=NAME",
             {}},
            {self});
    }
    for (const bool outgoing : {false, true})
        if (const Firewall::Rule* found = rule(self, outgoing, true))
            judging_.find({"firewall-suspected",
                           Severity::limits,
                           "A rule of the firewall drops multicasts.",
                           fmt::format("The firewall: {}. Run the doctor on several hosts to check whether "
                                       "the rule affects multicasts of other hosts.",
                                       found->text),
                           cost,
                           found->removal,
                           {}},
                          {self});
    if (own.sent > 0) judging_.fine("this host receives its own multicasts");
}

// Whether multicasts should pass between two hosts: both are in one subnet, or routers may forward.
bool Hearing::is_near(unsigned one, unsigned other) const {
    const Network &a = judging_.host(one).network, &b = judging_.host(other).network;
    return a.subnet == b.subnet || (a.ttl > 1 && b.ttl > 1);
}

bool Hearing::has_neighbour(unsigned one) const {
    return std::ranges::any_of(speakers_,
                               [&](unsigned other) { return other != one && is_near(one, other); });
}

void Hearing::split() {
    const auto nobody = [this](unsigned one, bool hearing) {
        return std::none_of(speakers_.begin(), speakers_.end(), [&](unsigned other) {
            return other != one && (hearing ? hears(one, other) : hears(other, one));
        });
    };
    for (const unsigned i : speakers_)
        if (nobody(i, true) && has_neighbour(i)) deaf_.push_back(i);
    all_deaf_ = deaf_.size() == speakers_.size();
    const auto is_deaf = [this](unsigned one) { return std::count(deaf_.begin(), deaf_.end(), one) > 0; };
    for (const unsigned i : speakers_) {
        const bool has_listener = std::any_of(speakers_.begin(), speakers_.end(), [&](unsigned other) {
            return other != i && !is_deaf(other) && is_near(i, other);
        });
        if (has_listener && nobody(i, false)) mute_.push_back(i);
    }
    // A host is not deaf if all other hosts are mute.
    for (const unsigned to : speakers_)
        for (const unsigned from : speakers_) pairs_heard_ += to != from && hears(to, from) ? 1 : 0;
}

void Hearing::find_nobody_hears() {
    for (const unsigned i : speakers_) {
        const Firewall::Rule* found = rule(i, false, true);
        if (found == nullptr) found = rule(i, true, true);
        if (found != nullptr)
            judging_.find(of_rule(*found, Severity::broken, "The firewall drops multicasts.",
                                  "Collectives between hosts use point-to-point messages."),
                          {i});
    }
    judging_.find({"nobody-hears",
                   Severity::broken,
                   "No host receives multicasts of another host.",
                   judging_.found("firewall")
                       ? "Firewalls drop them: see the firewall findings."
                       : "The network between the hosts does not carry multicast. Most cloud networks do "
                         "not; switches that snoop IGMP without a querier stop after some minutes.",
                   "Collectives between hosts use point-to-point messages, as without mcastcoll.",
                   "On the switches: enable an IGMP querier for this VLAN, or disable IGMP snooping.\nIn a "
                   "cloud: enable multicast in the settings of the network, if available.",
                   {}});
}

void Hearing::find_deaf(unsigned at) {
    const std::string title = "No multicasts of other hosts are received.";
    if (const Firewall::Rule* found = rule(at, false))
        return judging_.find(of_rule(*found, Severity::limits, title, kServed), {at});
    const Network& network = judging_.host(at).network;
    std::string cause =
        "No firewall rule here drops them, so they do not arrive: the switch port does not forward them";
    if (network.member && !*network.member) cause = "The kernel lists no membership of the group";
    if (!judging_.host(at).firewall.looked)
        cause =
            fmt::format("They do not arrive, or a firewall here drops them (the rules could not be read: {})",
                        judging_.host(at).firewall.looked.why_not);
    if (network.reverse_path && *network.reverse_path == 1)
        cause += fmt::format(
            "; or net.ipv4.conf.{}.rp_filter=1 drops packets of senders whose route uses another interface",
            network.interface);
    judging_.find({"deaf",
                   Severity::limits,
                   title,
                   cause + ".",
                   kServed,
                   "Check the switch port: IGMP snooping, storm control, the VLAN.",
                   {}},
                  {at});
}

void Hearing::find_mute(unsigned at) {
    const std::string title = "Multicasts sent here reach no other host.";
    const std::string cost = "Broadcasts from here use point-to-point messages.";
    if (const Firewall::Rule* found = rule(at, true))
        return judging_.find(of_rule(*found, Severity::limits, title, cost), {at});
    const std::string refused = refusal(at);
    judging_.find(
        {"mute",
         Severity::limits,
         title,
         refused.empty() ? std::string("They do not leave the host, or the switch port does not accept them.")
                         : kernel_refuses(refused),
         cost,
         "Check the switch port: storm control, the VLAN, a filter.",
         {}},
        {at});
}

void Hearing::find_missing_pairs() {
    std::vector<std::string> missing;
    const auto in = [](const std::vector<unsigned>& all, unsigned one) {
        return std::count(all.begin(), all.end(), one) > 0;
    };
    for (const unsigned to : speakers_)
        for (const unsigned from : speakers_)
            if (to != from && is_near(from, to) && !in(deaf_, to) && !in(mute_, from) && !hears(to, from))
                missing.push_back(
                    fmt::format("{} does not receive from {}", judging_.name(to), judging_.name(from)));
    if (missing.empty()) return;
    constexpr std::size_t kMost = 6;
    const std::size_t more = missing.size() > kMost ? missing.size() - kMost : 0;
    missing.resize(missing.size() - more);
    judging_.find(
        {"path-broken",
         Severity::limits,
         "Some hosts do not receive multicasts of some other hosts.",
         fmt::format("{}{}.", fmt::join(missing, "; "), more > 0 ? fmt::format("; and {} more", more) : ""),
         "Hosts that receive from each other form a segment; between segments point-to-point messages are "
         "used.",
         "Check the links between their switches: VLANs, IGMP snooping without a querier.",
         {}});
}

void Hearing::judge_full_size() {
    std::map<unsigned, std::size_t> pairs;  // number of affected pairs of each host
    std::size_t lost = 0, most = 0;
    std::uint64_t bytes = 0;
    for (const unsigned to : speakers_)
        for (const unsigned from : speakers_) {
            if (to == from || !hears(to, from) || count(from, to, {Phase::full}).sent == 0 ||
                count(from, to, {Phase::full}).got > 0)
                continue;
            ++lost;
            for (const Stream& stream : judging_.host(from).sent)
                if (stream.phase == Phase::full) bytes = stream.bytes;
            most = std::max({most, ++pairs[to], ++pairs[from]});
        }
    // The hosts in most of the pairs are nearest to the cause.
    std::vector<unsigned> affected;
    for (const auto& [host, count] : pairs)
        if (count == most) affected.push_back(host);
    if (lost == 0) return;
    judging_.find(
        {"full-size-lost",
         lost == pairs_heard_ ? Severity::broken : Severity::limits,
         fmt::format("Short multicasts arrive, but datagrams of {} bytes do not.", bytes),
         "A switch, bridge or tunnel between the hosts has a smaller MTU than the hosts' interfaces.",
         "These hosts count as unable to receive multicast: they get point-to-point messages instead.",
         "Raise the MTU between the hosts, or lower the MTU of the hosts: ip link set dev INTERFACE mtu N",
         {}},
        affected);
}

void Hearing::judge_again() {
    std::vector<unsigned> cut;
    for (const unsigned to : speakers_) {
        const Count later = count_from_all(to, {Phase::again});
        if (later.sent > 0 && later.got == 0) cut.push_back(to);
    }
    if (cut.empty()) return;
    judging_.find(
        {"cut-off",
         cut.size() == speakers_.size() ? Severity::broken : Severity::limits,
         fmt::format("Multicasts arrived at first, but no longer after {:.0f} s.", judging_.facts().wait_s),
         "A switch that snoops IGMP (MLD) has removed the group members: there is no querier, or queries or "
         "reports are dropped.",
         "Groups work for some minutes, then lose multicast and continue with point-to-point messages.",
         "On the switch: enable an IGMP querier for this VLAN, or disable IGMP snooping.\nOn a Linux bridge: "
         "ip link set dev BRIDGE type bridge mcast_querier 1",
         {}},
        cut);
}

void judge_hearing(Judging& judging) {
    Hearing(judging).judge();
    for (const unsigned i : judging.speakers())
        if (!judging.host(i).firewall.looked)
            judging.unseen("the firewall's rules", judging.host(i).firewall.looked.why_not);
}

}  // namespace mcastcoll::doctor
