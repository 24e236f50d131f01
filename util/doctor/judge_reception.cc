// Judges reception: which hosts receive from which, and losses.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "reception.h"

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

Reception::Reception(Judging& judging)
    : judging_(judging), received_(judging.facts().hosts.size()), senders_(judging.senders()) {
    for (const unsigned to : senders_) {
        received_[to].resize(received_.size() * kPhases);
        for (const ReceivedStream& received : judging_.host(to).received)
            if (received.from < received_.size())
                received_[to][received.from * kPhases + static_cast<std::size_t>(received.phase)] = &received;
    }
}

Reception::Count Reception::count(unsigned from, unsigned to, std::initializer_list<Phase> phases) const {
    Count count;
    for (const Phase phase : phases) {
        for (const Stream& stream : judging_.host(from).sent)
            if (stream.phase == phase) count.sent += stream.datagrams;
        const ReceivedStream* const received =
            received_[to][from * kPhases + static_cast<std::size_t>(phase)];
        if (received == nullptr) continue;
        count.got += received->datagrams;
        count.twice += received->duplicates;
        count.late += received->late;
        count.gap = std::max(count.gap, received->longest_gap);
    }
    return count;
}

Reception::Count Reception::count_from_all(unsigned to, std::initializer_list<Phase> phases) const {
    Count sum;
    for (const unsigned from : senders_) {
        if (from == to || !receives(to, from)) continue;
        const Count one = count(from, to, phases);
        sum = {sum.sent + one.sent, sum.got + one.got, sum.twice + one.twice, sum.late + one.late,
               std::max(sum.gap, one.gap)};
    }
    return sum;
}

std::string Reception::refusal(unsigned at) const {
    std::string refused;
    for (const Stream& stream : judging_.host(at).sent)
        refused = stream.error.empty() ? refused : stream.error;
    return refused;
}

const Firewall::Rule* Reception::rule(unsigned at, bool outgoing, bool surely) const {
    const Firewall::Rule* found = nullptr;
    for (const Firewall::Rule& rule : judging_.host(at).firewall.rules)
        if (rule.outgoing == outgoing && (!surely || rule.names_multicast) &&
            (found == nullptr || (rule.names_multicast && !found->names_multicast)))
            found = &rule;
    return found;
}

void Reception::judge() {
    if (senders_.empty() || judging_.found("address-shared")) return;
    if (senders_.size() == 1) return judge_alone();
    split();
    if (none_receives_) return find_none_receives();
    for (const unsigned i : not_receiving_) find_not_receiving(i);
    for (const unsigned i : not_received_) find_not_received(i);
    find_missing_pairs();
    if (working_pairs_ == 0) return;
    judge_full_size();
    judge_again();
    judge_losses();
    judge_order();
    if (not_receiving_.empty() && not_received_.empty() && !judging_.found("path-broken"))
        judging_.fine(fmt::format("each of {} hosts receives from every other host{}", senders_.size(),
                                  judging_.found("subnets-differ") ? " of its subnet" : ""));
}

// Judges a single host: whether its own multicasts return to it.
void Reception::judge_alone() {
    const unsigned self = senders_.front();
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
            {"own-not-received",
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
bool Reception::is_near(unsigned one, unsigned other) const {
    const Network &a = judging_.host(one).network, &b = judging_.host(other).network;
    return a.subnet == b.subnet || (a.ttl > 1 && b.ttl > 1);
}

bool Reception::has_neighbour(unsigned one) const {
    return std::ranges::any_of(senders_, [&](unsigned other) { return other != one && is_near(one, other); });
}

void Reception::split() {
    const auto none = [this](unsigned one, bool receiving) {
        return std::none_of(senders_.begin(), senders_.end(), [&](unsigned other) {
            return other != one && (receiving ? receives(one, other) : receives(other, one));
        });
    };
    for (const unsigned i : senders_)
        if (none(i, true) && has_neighbour(i)) not_receiving_.push_back(i);
    none_receives_ = not_receiving_.size() == senders_.size();
    const auto is_not_receiving = [this](unsigned one) {
        return std::count(not_receiving_.begin(), not_receiving_.end(), one) > 0;
    };
    for (const unsigned i : senders_) {
        const bool has_receiver = std::any_of(senders_.begin(), senders_.end(), [&](unsigned other) {
            return other != i && !is_not_receiving(other) && is_near(i, other);
        });
        if (has_receiver && none(i, false)) not_received_.push_back(i);
    }
    for (const unsigned to : senders_)
        for (const unsigned from : senders_) working_pairs_ += to != from && receives(to, from) ? 1 : 0;
}

void Reception::find_none_receives() {
    for (const unsigned i : senders_) {
        const Firewall::Rule* found = rule(i, false, true);
        if (found == nullptr) found = rule(i, true, true);
        if (found != nullptr)
            judging_.find(of_rule(*found, Severity::broken, "The firewall drops multicasts.",
                                  "Collectives between hosts use point-to-point messages."),
                          {i});
    }
    judging_.find({"none-receives",
                   Severity::broken,
                   "No host receives multicasts of another host.",
                   judging_.found("firewall")
                       ? "Firewalls drop them: see the firewall findings."
                       : "The network between the hosts does not carry multicast. Most cloud networks do "
                         "not; switches that snoop IGMP without a querier stop after some minutes.",
                   "Collectives between hosts use point-to-point messages, as without mcastcoll.",
                   "On the switches: enable an IGMP querier for this VLAN, or disable IGMP snooping.\n"
                   "In a cloud: enable multicast in the settings of the network, if available.",
                   {}});
}

void Reception::find_not_receiving(unsigned at) {
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
    judging_.find({"not-receiving",
                   Severity::limits,
                   title,
                   cause + ".",
                   kServed,
                   "Check the switch port: IGMP snooping, storm control, the VLAN.",
                   {}},
                  {at});
}

void Reception::find_not_received(unsigned at) {
    const std::string title = "Multicasts sent here reach no other host.";
    const std::string cost = "Broadcasts from here use point-to-point messages.";
    if (const Firewall::Rule* found = rule(at, true))
        return judging_.find(of_rule(*found, Severity::limits, title, cost), {at});
    const std::string refused = refusal(at);
    judging_.find(
        {"not-received",
         Severity::limits,
         title,
         refused.empty() ? std::string("They do not leave the host, or the switch port does not accept them.")
                         : kernel_refuses(refused),
         cost,
         "Check the switch port: storm control, the VLAN, a filter.",
         {}},
        {at});
}

void Reception::find_missing_pairs() {
    std::vector<std::string> missing;
    const auto in = [](const std::vector<unsigned>& all, unsigned one) {
        return std::count(all.begin(), all.end(), one) > 0;
    };
    for (const unsigned to : senders_)
        for (const unsigned from : senders_)
            if (to != from && is_near(from, to) && !in(not_receiving_, to) && !in(not_received_, from) &&
                !receives(to, from))
                missing.push_back(
                    fmt::format("{} does not receive from {}", judging_.name(to), judging_.name(from)));
    if (missing.empty()) return;
    constexpr std::size_t kMax = 6;
    const std::size_t more = missing.size() > kMax ? missing.size() - kMax : 0;
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

void Reception::judge_full_size() {
    std::map<unsigned, std::size_t> pairs;  // number of affected pairs of each host
    std::size_t lost = 0, max = 0;
    std::uint64_t bytes = 0;
    for (const unsigned to : senders_)
        for (const unsigned from : senders_) {
            if (to == from || !receives(to, from) || count(from, to, {Phase::full}).sent == 0 ||
                count(from, to, {Phase::full}).got > 0)
                continue;
            ++lost;
            for (const Stream& stream : judging_.host(from).sent)
                if (stream.phase == Phase::full) bytes = stream.bytes;
            max = std::max({max, ++pairs[to], ++pairs[from]});
        }
    // The hosts in most of the pairs are nearest to the cause.
    std::vector<unsigned> affected;
    for (const auto& [host, count] : pairs)
        if (count == max) affected.push_back(host);
    if (lost == 0) return;
    judging_.find(
        {"full-size-lost",
         lost == working_pairs_ ? Severity::broken : Severity::limits,
         fmt::format("Short multicasts arrive, but datagrams of {} bytes do not.", bytes),
         "A switch, bridge or tunnel between the hosts has a smaller MTU than the hosts' interfaces.",
         "These hosts count as unable to receive multicast: they get point-to-point messages instead.",
         "Raise the MTU between the hosts, or lower the MTU of the hosts: ip link set dev INTERFACE mtu N",
         {}},
        affected);
}

void Reception::judge_again() {
    std::vector<unsigned> cut;
    for (const unsigned to : senders_) {
        const Count later = count_from_all(to, {Phase::again});
        if (later.sent > 0 && later.got == 0) cut.push_back(to);
    }
    if (cut.empty()) return;
    judging_.find(
        {"cut-off",
         cut.size() == senders_.size() ? Severity::broken : Severity::limits,
         fmt::format("Multicasts arrived at first, but no longer after {:.0f} s.", judging_.facts().wait_s),
         "A switch that snoops IGMP (MLD) has removed the group members: there is no querier, or queries or "
         "reports are dropped.",
         "Groups work for some minutes, then lose multicast and continue with point-to-point messages.",
         "On the switch: enable an IGMP querier for this VLAN, or disable IGMP snooping.\n"
         "On a Linux bridge: ip link set dev BRIDGE type bridge mcast_querier 1",
         {}},
        cut);
}

void judge_reception(Judging& judging) {
    Reception(judging).judge();
    for (const unsigned i : judging.senders())
        if (!judging.host(i).firewall.looked)
            judging.unseen("the firewall's rules", judging.host(i).firewall.looked.why_not);
}

}  // namespace mcastcoll::doctor
