#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "judging.h"

namespace mcastcoll::doctor {

std::string size_text(std::uint64_t bytes) {
    for (const auto& [unit, name] : {std::pair{30U, "GiB"}, {20U, "MiB"}, {10U, "KiB"}}) {
        if (bytes < std::uint64_t{1} << unit) continue;
        const double value = static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << unit);
        return value < 10 && bytes % (std::uint64_t{1} << unit) != 0 ? fmt::format("{:.1f} {}", value, name)
                                                                     : fmt::format("{:.0f} {}", value, name);
    }
    return fmt::format("{} bytes", bytes);
}

std::vector<std::string> names_of(const Facts& facts) {
    std::vector<std::string> names = facts.names;
    names.resize(facts.hosts.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        if (facts.hosts[i] && (names.size() == 1 || names[i].empty()))
            names[i] = facts.hosts[i]->machine.name;
    const std::vector<std::string> plain = names;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (std::count(plain.begin(), plain.end(), plain[i]) > 1)
            names[i] = fmt::format("{}#{}", plain[i], i);
    return names;
}

Judging::Judging(const Facts& facts) : facts_(facts), names_(names_of(facts)) {
    for (unsigned i = 0; i < facts.hosts.size(); ++i)
        if (facts.hosts[i]) present_.push_back(i);
}

std::vector<unsigned> Judging::senders() const {
    std::vector<unsigned> found;
    for (const unsigned i : present_)
        if (host(i).sends) found.push_back(i);
    return found;
}

std::string Judging::names(const std::vector<unsigned>& hosts) const {
    constexpr std::size_t kMax = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(hosts.size(), kMax); ++i)
        text += (text.empty() ? "" : ", ") + name(hosts[i]);
    return hosts.size() > kMax ? fmt::format("{} and {} more", text, hosts.size() - kMax) : text;
}

void Judging::find(Finding finding, const std::vector<unsigned>& hosts) {
    for (std::size_t i = 0; i < diagnosis_.findings.size(); ++i) {
        const Finding& other = diagnosis_.findings[i];
        if (other.id != finding.id || other.title != finding.title || other.cause != finding.cause ||
            other.mend != finding.mend || other.severity != finding.severity)
            continue;
        where_[i].insert(where_[i].end(), hosts.begin(), hosts.end());
        return;
    }
    diagnosis_.findings.push_back(std::move(finding));
    where_.push_back(hosts);
}

void Judging::fine(std::string line) {
    diagnosis_.fine.push_back(std::move(line));
}

void Judging::find_where(const std::function<bool(const Host&)>& wrong,
                         const std::function<Finding(const Host&)>& finding, const std::string& otherwise) {
    bool any = false;
    for (const unsigned i : present_) {
        if (!wrong(host(i))) continue;
        find(finding(host(i)), {i});
        any = true;
    }
    if (!any && !otherwise.empty()) fine(otherwise);
}

void Judging::unseen(const std::string& what, const std::string& why) {
    const std::string line = fmt::format("{}: {}", what, why);
    auto& lines = diagnosis_.unseen;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
}

bool Judging::found(std::string_view id) const {
    return std::any_of(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                       [id](const Finding& finding) { return finding.id == id; });
}

bool Judging::soften() {
    constexpr std::string_view kOfMulticast[] = {"no-interface",  "no-sockets",     "firewall",
                                                 "none-receives", "full-size-lost", "cut-off"};
    const bool formed = senders().size() > 1 && std::ranges::all_of(present_, [this](unsigned i) {
                            return host(i).end_to_end && host(i).end_to_end->error.empty();
                        });
    bool softened = false;
    for (Finding& one : diagnosis_.findings) {
        if (!formed || one.severity != Severity::broken || std::ranges::count(kOfMulticast, one.id) == 0)
            continue;
        one.severity = Severity::limits;
        softened = true;
    }
    return softened;
}

Diagnosis Judging::end(std::string sentence) {
    for (std::size_t i = 0; i < where_.size(); ++i)
        if (present_.size() > 1 && where_[i].size() < present_.size())
            for (const unsigned at : where_[i]) diagnosis_.findings[i].hosts.push_back(name(at));
    std::stable_sort(diagnosis_.findings.begin(), diagnosis_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
    for (const Finding& finding : diagnosis_.findings)
        diagnosis_.worst = std::max(diagnosis_.worst, finding.severity);
    diagnosis_.sentence = std::move(sentence);
    return std::move(diagnosis_);
}

namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view several) {
    return fmt::format("{} {}", count, count == 1 ? one : several);
}

// The summary, in one sentence.
std::string sum_up(const Judging& judging, const std::vector<Finding>& findings, bool without_multicast) {
    const auto has = [&](Severity severity) {
        return static_cast<std::size_t>(std::count_if(
            findings.begin(), findings.end(), [&](const Finding& one) { return one.severity == severity; }));
    };
    if (has(Severity::broken) > 0)
        return fmt::format("mcastcoll will not work here: {}.",
                           counted(has(Severity::broken), "problem prevents it", "problems prevent it"));
    const std::size_t limits = has(Severity::limits);
    const auto senders = judging.senders();
    if (without_multicast)
        return fmt::format(
            "mcastcoll will be slower here: a group of these {} hosts works, but without multicast; {}.",
            senders.size(), counted(limits, "problem prevents it", "problems prevent it"));
    std::string carrier = "multicast";
    if (!senders.empty()) {
        const Host& first = judging.host(senders.front());
        carrier = first.rdma.group && first.libraries.wants_verbs
                      ? fmt::format("RDMA multicast on {}", *first.rdma.group)
                      : fmt::format("UDP multicast on {}", first.network.interface);
        if (!first.libraries.multicast) carrier = "messages only, without multicast";
    }
    const std::string where =
        senders.size() > 1 ? fmt::format("between these {} hosts over {}", senders.size(), carrier)
                           : fmt::format("on this host, and over {} if other hosts receive it", carrier);
    return fmt::format("mcastcoll will work {}{}.", where,
                       limits == 0 ? ""
                                   : "; " + counted(limits, "problem makes it slower or limits it",
                                                    "problems make it slower or limit it"));
}

constexpr std::uint32_t kEthernetMtu = 1500, kHeaders = 28;  // of IPv4 and ICMP

std::uint32_t largest_mtu(const Judging& judging) {
    std::uint32_t mtu = 0;
    for (const unsigned i : judging.present())
        if (!judging.host(i).network.loopback) mtu = std::max(mtu, judging.host(i).network.mtu);
    return mtu;
}

}  // namespace

Diagnosis judge(const Facts& facts) {
    Judging judging(facts);
    const std::uint32_t mtu = largest_mtu(judging);
    for (unsigned i = 0; i < facts.hosts.size(); ++i) {
        if (i >= facts.names.size() || facts.names[i].empty()) continue;
        const std::string why = i < facts.gone.size() ? facts.gone[i] : "";
        if (facts.hosts[i] && why.empty()) continue;
        judging.find(
            {"host-missing",
             Severity::broken,
             fmt::format("Host {} does not respond.", judging.name(i)),
             fmt::format("The doctor could not be started there, or did not respond in time{}.{}",
                         why.empty() ? "" : ": " + why,
                         mtu <= kEthernetMtu ? ""
                                             : fmt::format(" Or a device between the hosts drops packets as "
                                                           "long as the hosts' MTU of {} bytes.",
                                                           mtu)),
             "A job with a process on this host will not start, or will end early.",
             fmt::format("Check whether `ssh {0} mcastcoll-doctor --here` works{1}.", judging.name(i),
                         mtu <= kEthernetMtu
                             ? ""
                             : fmt::format(", and `ping -M do -s {} {}`", mtu - kHeaders, judging.name(i))),
             {judging.name(i)}});
    }
    judge_libraries(judging);
    judge_interface(judging);
    judge_reception(judging);
    judge_querier(judging);
    judge_group(judging);
    judge_memory(judging);
    judge_rdma(judging);
    judge_machine(judging);
    const bool without_multicast = judging.soften();
    Diagnosis diagnosis = judging.end("");
    diagnosis.sentence = sum_up(judging, diagnosis.findings, without_multicast);
    return diagnosis;
}

}  // namespace mcastcoll::doctor
