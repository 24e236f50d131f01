// What a station tells: the application's event queue, mcastcoll-topo, and the file of statistics.
#include <fcntl.h>
#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ofi/endpoint.h"
#include "ofi/live_station.h"

namespace mcastcoll::ofi {

void LiveStation::report_join(fid_mc& mc, int error) {
    if (error != 0) return write_error(FI_JOIN_COMPLETE, mc, error, 0);
    fi_eq_entry good{&mc.fid, mc.fid.context, 0};
    if (fi_eq_write(endpoint_.eq, FI_JOIN_COMPLETE, &good, sizeof good, 0) < 0)
        log(Level::warn, "the event queue did not take FI_JOIN_COMPLETE");
}

// There is no event of libfabric's for it but an error entry, as for a connection that breaks.
void LiveStation::report_failure(fid_mc& mc, int error, Rank lost) {
    write_error(FI_SHUTDOWN, mc, error, lost == kNoRank ? FI_ADDR_NOTAVAIL : index_of(lost));
}

void LiveStation::write_error(std::uint32_t event, fid_mc& mc, int error, std::uint64_t data) {
    fi_eq_err_entry entry{};
    entry.fid = &mc.fid;
    entry.context = mc.fid.context;
    entry.data = data;
    entry.err = error;
    // libfabric's own queues take errors under this flag, which has no public name.
    constexpr std::uint64_t kErrorEvent = std::uint64_t{1} << 60;
    if (fi_eq_write(endpoint_.eq, event, &entry, sizeof entry, kErrorEvent) < 0)
        log(Level::warn, "the event queue did not take the error of a group");
}

// For mcastcoll-topo. Nobody needs it, so what goes wrong is told and no more.
void LiveStation::write_report(Nanoseconds time) {
    report_.begin(time);
    topology::Report report;
    engine::Counters counters = ended_counters_;
    group::LevelCounters levels = ended_levels_;
    for (const auto& group : groups_) {
        group->add_counters(counters, levels);
        if (group->core().formed() && report.groups.size() < GroupsReport::kMostGroups)
            report.groups.push_back(group->core().report());
    }
    for (const engine::NamedCounter& counter : engine::kCounters)
        if (counters.*counter.member != 0)
            report.counters.emplace_back(counter.name, counters.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        if (levels.*counter.member != 0) report.counters.emplace_back(counter.name, levels.*counter.member);
    if (auto written = report_.write(report); !written)
        log(Level::info, "mcastcoll-topo will not show this process: {}", written.error().message);
}

// FI_MCASTCOLL_STATS=PREFIX: counters of this endpoint's groups as PREFIX.HOST.PID.json.
void LiveStation::write_statistics() {
    if (ended_counters_.operations_submitted == 0 && ended_counters_.probes_sent == 0 &&
        ended_levels_.host_operations == 0)
        return;
    const auto& total = ended_counters_;
    log(Level::info,
        "multicast {} datagrams, {} fragments heard, {} repaired, {} duplicates; {} messages, {} asks",
        total.datagrams_sent, total.fragments_by_multicast, total.fragments_repaired, total.duplicates,
        total.messages_sent, total.asks_sent);
    if (settings_.stats.empty()) return;
    const MulticastCounters wire = multicast_.counters();
    const VerbsTransport* const verbs = multicast_.verbs();
    std::string text;
    const auto add = [&](std::string_view name, std::uint64_t value) {
        text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", name, value);
    };
    for (const engine::NamedCounter& counter : engine::kCounters) add(counter.name, total.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        add(counter.name, ended_levels_.*counter.member);
    add("socket_drops", wire.socket_drops);
    add("truncated", wire.truncated);
    add("send_errors", wire.send_errors);
    add("multicast_bytes_sent", wire.bytes_sent);
    add("verbs_datagrams_sent", verbs != nullptr ? verbs->counters().datagrams_sent : 0);
    add("verbs_revivals", verbs != nullptr ? verbs->counters().revivals : 0);
    add("foreign_messages", foreign_messages_);
    add("foreign_datagrams", joins_.foreign_datagrams());
    add("doubts", doubts_);
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    text += "\n}\n";
    const std::string name = fmt::format("{}.{}.{}.json", settings_.stats, host, getpid());
    // The name can be guessed, and the folder may be everybody's: no link is followed.
    constexpr int kHow = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const FileDescriptor file(::open(name.c_str(), kHow, 0644));
    if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        log(Level::warn, "no statistics in {}: {}", name, std::strerror(errno));
}

}  // namespace mcastcoll::ofi
