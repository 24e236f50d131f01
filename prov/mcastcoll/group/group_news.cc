#include "group/group_news.h"

#include <fmt/core.h>

#include <cerrno>

namespace mcastcoll::group {

void tell_joined(Port& port, const LevelSet& set, Rank self) {
    if (set.placement().members() == 1) return port.explain("joined, nobody else is in it");
    const engine::Engine* const engine = set.engine();
    const std::string where = fmt::format("joined as rank {}{}", index_of(self), set.describe());
    if (engine == nullptr) return port.explain(where);
    port.explain(fmt::format("{}: {}", where, set.describe_multicast()));
    const std::vector<std::uint32_t>& segment = set.placement().segment();
    const engine::SupplyGraph& graph = engine->graph();
    if (graph.hearing_count() == 0 || graph.hearing_count() == segment.size()) return;
    for (std::size_t i = 0; i < segment.size(); ++i)
        if (graph.deaf(rank_of(i)))
            port.explain(
                fmt::format("rank {} cannot hear the multicast, it is served point-to-point", segment[i]));
}

void tell_selection(Port& port, LevelSet& set) {
    const auto& placement = set.placement();
    levels::Planner::News news;
    if (!set.planner().poll_news(news) || placement.members() == 1) return;
    port.explain(
        fmt::format("{} of {} bytes over {} members on {} hosts: takes {} ({})", levels::name_of(news.kind),
                    news.bytes, placement.members(), placement.hosts(), levels::to_text(news.choice),
                    placement.hosts() == 1 ? "one host: shared memory" : "rank 0's table of algorithms"));
}

std::string describe_loss(const Port& port, const LevelSet& set, int error, Rank lost,
                          const std::string* reason) {
    if (lost == kNoRank) return {};
    const std::string at = port.address_of(lost);
    if (error == ETIMEDOUT) return fmt::format(" (waited for rank {} at {})", index_of(lost), at);
    const char* otherwise = lost == set.lost_here() ? "its process has ended" : "another member says so";
    return fmt::format(" (lost rank {} at {}: {})", index_of(lost), at,
                       reason != nullptr ? reason->c_str() : otherwise);
}

topology::ReportedGroup report_of(const Group& group, const char* error) {
    topology::ReportedGroup report = group.levels().report();
    report.state = group.error() != 0 ? fmt::format("failed: {}", error)
                   : group.joined()   ? "ready"
                                      : "forming";
    return report;
}

}  // namespace mcastcoll::group
