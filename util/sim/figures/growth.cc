// Growth of whole groups: the cost of the join, the memory of a member, and the completion of the last rank,
// from 16 to 65,536 ranks on hosts of up to 64 processes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "figure.h"
#include "measure_groups.h"

namespace mcastcoll::sim {
namespace {

// Returns a group with as many processes per host as there are hosts, up to 64.
GroupExperiment group_of(const FigureOptions& options, std::uint32_t ranks, double loss) {
    GroupExperiment group;
    group.model = options.network->model;
    group.seed = options.seed;
    group.faults.loss = loss;
    while (group.per_host < 64 && group.members() * group.per_host < ranks) group.per_host *= 2;
    group.hosts = ranks / group.per_host;
    group.kinds = {CollectiveKind::broadcast, CollectiveKind::allreduce};
    group.operations = options.quick ? 3 : 5;
    group.root = 0;
    return group;
}

constexpr const char* kColumns[] = {"join_us",        "messages_rank0", "messages_most", "datagrams_rank0",
                                    "datagrams_most", "sent_rank0",     "sent_most",     "received_rank0",
                                    "received_most",  "memory_mean",    "memory_most",   "broadcast_us",
                                    "allreduce_us"};

// Rounds a number of bytes to three digits, because the C library may allocate a few bytes more than
// requested, and not always the same number.
double rounded(double bytes) {
    const double digit = std::pow(10, std::floor(std::log10(bytes)) - 2);
    return std::round(bytes / digit) * digit;
}

std::vector<double> costs_of(const GroupExperiment& group) {
    const GroupMeasured measured = measure_groups(group);
    if (measured.failures > 0)
        throw std::runtime_error(fmt::format("{} ranks: {}", group.members(), measured.first_failure));
    std::vector<double> costs{in_us(measured.join)};
    for (const GroupMeasured::Share& share : {measured.join_messages, measured.join_datagrams,
                                              measured.join_bytes_sent, measured.join_bytes_received})
        costs.insert(costs.end(), {static_cast<double>(share.rank0), static_cast<double>(share.max)});
    const GroupMeasured::Share& memory = measured.peak_bytes;
    costs.insert(costs.end(),
                 {rounded(memory.mean), rounded(static_cast<double>(std::max(memory.rank0, memory.max)))});
    for (const auto& [kind, times] : measured.operations) costs.push_back(in_us(times.last()));
    return costs;
}

Figure growth(const FigureOptions& options) {
    Figure figure{
        .title = "Whole groups of every size",
        .x = {"ranks", 2},
        .y = {"microseconds", 10},
        .columns = {"ranks", "per_host"},
        .remarks = {"join: until all have joined; messages, datagrams, bytes sent and received until "
                    "then, of rank 0 and of the busiest other; memory: bytes of groups and joins in a "
                    "process; broadcast, allreduce: 8 bytes, the last rank, median over operations",
                    "lossy: the same with 1 % of the multicasts lost at each receiver"}};
    for (const std::string loss : {"", "lossy_"})
        for (const std::string column : kColumns) {
            if (column.ends_with("_us"))
                figure.curves.push_back(
                    {figure.columns.size(), fmt::format("{}{}", column.substr(0, column.size() - 3),
                                                        loss.empty() ? "" : ", 1 % lost")});
            figure.columns.push_back(loss + column);
        }
    for (std::uint32_t ranks = 16; ranks <= options.largest; ranks *= 4) {
        std::vector<double>& row = figure.rows.emplace_back(1, ranks);
        row.push_back(group_of(options, ranks, 0).per_host);
        for (const double loss : {0.0, 0.01}) {
            options.begin(fmt::format("{} ranks, {} % lost", ranks, 100 * loss));
            const std::vector<double> costs = costs_of(group_of(options, ranks, loss));
            row.insert(row.end(), costs.begin(), costs.end());
        }
    }
    return figure;
}

}  // namespace

std::vector<NamedFigure> growth_figures() {
    return {{"growth", "joins, memory and times of whole groups, to 65,536 ranks", "ethernet", growth}};
}

}  // namespace mcastcoll::sim
