#include "activity.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topo.h"

namespace mcastcoll::topo {
namespace {

using topology::Counts;
using topology::ReportedGroup;

// Returns the increase of a counter; a missing counter is 0.
double growth(const Counts& before, const Counts& now, std::string_view name) {
    const auto value = [name](const Counts& counts) {
        const auto found = std::ranges::find(counts, name, [](const auto& one) { return one.first; });
        return found != counts.end() ? static_cast<double>(found->second) : 0.0;
    };
    return std::max(0.0, value(now) - value(before));
}

const ReportedGroup* find(const LoadedReport& report, std::uint64_t key) {
    const auto& groups = report.report.groups;
    const auto found = std::ranges::find(groups, key, &ReportedGroup::key);
    return found != groups.end() ? &*found : nullptr;
}

void name_transport(Activity& activity, const ReportedGroup& group) {
    for (const topology::ReportedLevel& level : group.levels) {
        if (!level.connects) continue;
        // From far to near: the path between hosts is more informative than the path inside a host.
        activity.transport = level.transport;
        activity.repair = level.algorithm;
        if (level.level >= topology::Level::segment) break;
    }
}

void add(Activity& activity, const ReportedGroup& before, const ReportedGroup& now, double seconds) {
    const auto rate = [&](std::string_view name) {
        return seconds > 0 ? growth(before.counters, now.counters, name) / seconds : 0.0;
    };
    // Inside one host, operations on the fast path have their own counters; with several hosts, shared memory
    // carries only parts of operations.
    const bool one_host = rate("group_operations") == 0;
    activity.operations =
        std::max(activity.operations, rate(one_host ? "host_operations" : "group_operations"));
    activity.bytes = std::max(activity.bytes, rate(one_host ? "host_bytes" : "group_bytes"));
    activity.sent += rate("datagrams_sent");
    activity.received += rate("fragments_by_multicast");
    activity.repaired += rate("fragments_repaired") + rate("fragments_restored");
    activity.reporting.push_back(now.rank);
    if (activity.state.empty() || activity.state == "ready") activity.state = now.state;
    if (now.awaited != kNoRank) activity.awaited = now.awaited;
    if (activity.transport.empty()) name_transport(activity, now);
}

// 12, 1.2 k, 3.4 M
std::string short_number(double value) {
    constexpr std::string_view kUnits[] = {"", " k", " M", " G", " T"};
    std::size_t unit = 0;
    for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
    return fmt::format("{:.{}f}{}", value, value < 10 && value > 0 ? 1 : 0, kUnits[unit]);
}

}  // namespace

std::vector<Activity> compare(const LoadedReports& before, const LoadedReports& now) {
    std::map<std::pair<std::uint64_t, std::string>, Activity> found;
    for (const LoadedReport& one : now.reports) {
        const auto earlier = std::ranges::find(before.reports, one.path, &LoadedReport::path);
        if (earlier == before.reports.end()) continue;
        for (const ReportedGroup& group : one.report.groups) {
            const ReportedGroup* const was = find(*earlier, group.key);
            if (was == nullptr) continue;
            Activity& activity = found[{group.key, one.host}];
            activity.key = group.key;
            activity.program = one.program;
            activity.host = one.host;
            add(activity, *was, group, one.written - earlier->written);
        }
    }
    std::vector<Activity> all;
    for (auto& [key, activity] : found) {
        std::ranges::sort(activity.reporting);
        all.push_back(std::move(activity));
    }
    return all;
}

std::string as_table(const std::vector<Activity>& activities) {
    constexpr const char* kRow = "{:<16} {:<15} {:<12} {:<10} {:>7} {:>8} {:>7} {:>10} {:<13} {:<6} {}\n";
    std::string text = fmt::format(fmt::runtime(kRow), "group", "program", "host", "ranks", "ops/s",
                                   "bytes/s", "loss", "repaired/s", "transport", "repair", "state");
    for (const Activity& one : activities) {
        const std::string waits =
            one.awaited == kNoRank ? "" : fmt::format(", waits for rank {}", index_of(one.awaited));
        text += fmt::format(fmt::runtime(kRow), fmt::format("{:016x}", one.key), one.program, one.host,
                            ranges(one.reporting), short_number(one.operations), short_number(one.bytes),
                            fmt::format("{:.1f} %", 100 * one.loss()), short_number(one.repaired),
                            one.transport, one.repair, one.state + waits);
    }
    return text;
}

std::string as_metrics(const LoadedReports& loaded) {
    const auto quoted = [](const std::string& text) {
        std::string out;
        for (const char c : text)
            out += c == '\n' ? "\\n" : c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
        return '"' + out + '"';
    };
    std::map<std::string, std::string> lines;  // by counter: the format requires one block per counter
    for (const LoadedReport& one : loaded.reports)
        for (const ReportedGroup& group : one.report.groups)
            for (const auto& [name, value] : group.counters)
                lines[name] += fmt::format(
                    "mcastcoll_{}_total{{host={},pid=\"{}\",program={},group=\"{:016x}\",rank=\"{}\"}} {}\n",
                    name, quoted(one.host), one.pid, quoted(one.program), group.key, index_of(group.rank),
                    value);
    std::string text;
    for (const auto& [name, of_it] : lines)
        text += fmt::format("# TYPE mcastcoll_{}_total counter\n{}", name, of_it);
    return text;
}

}  // namespace mcastcoll::topo
