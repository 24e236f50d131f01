// What the levels of a group tell: counters, the log's sentences, what mcastcoll-topo shows.
#include <fmt/core.h>

#include "group/level_set.h"
#include "group/places.h"

namespace mcastcoll::group {

void LevelSet::add_counters(engine::Counters& sum, LevelCounters& levels) const {
    if (engine_) engine::add(sum, engine_->counters());
    if (host_level_) host_level_->add_counters(levels);
    const levels::PlanCounters& plans = planner_->counters();
    levels.plans_reduction += plans.reductions;
    levels.plans_chains += plans.chains;
    levels.plans_split += plans.splits;
    levels.block_bytes_broadcast += plans.block_bytes_broadcast;
    const levels::PieceCounters& between_sites = site_level_.counters();
    levels.site_pieces_sent += between_sites.pieces_sent;
    levels.site_bytes_sent += between_sites.bytes_sent;
    levels.site_bad_pieces += between_sites.bad_pieces;
    if (!exchange_level_) return;
    const levels::PieceCounters& among_all = exchange_level_->counters();
    levels.exchange_pieces_sent += among_all.pieces_sent;
    levels.exchange_bytes_sent += among_all.bytes_sent;
    levels.exchange_bad_pieces += among_all.bad_pieces;
}

topology::ReportedGroup LevelSet::report() const {
    topology::ReportedGroup report;
    report.key = static_cast<std::uint64_t>(key_);
    report.rank = rank_of(placement_.self());
    for (const wire::ByteString& place : places_) report.places.push_back(decode_place(place));
    report.policy = map_.policy();
    report.levels = topology::describe_levels(map_);
    for (topology::ReportedLevel& level : report.levels) {
        if (level.level == topology::Level::host && host_level_) {
            level.lane = "shared memory";
            level.why = host_level_->explain();
        } else if (level.level == topology::Level::segment && engine_ && engine_joined_) {
            const std::size_t hearing = engine_->graph().hearing_count();
            level.lane = hearing > 0 ? "multicast" : "messages";
            level.algorithm = std::string(engine::name_of(engine_->config().repair));
            level.why = no_multicast_.empty()
                            ? fmt::format("multicast {} reaches {} of {} hosts", port_.multicast().name(),
                                          hearing, engine_->config().members)
                            : no_multicast_;
        }
    }
    return report;
}

std::string LevelSet::describe() const {
    std::string text;
    if (placement_.host().size() > 1)
        text += fmt::format("; {} processes of this host by shared memory, led by rank {}",
                            placement_.host().size(), placement_.host().front());
    if (several() && placement_.segment().size() > 1)
        text += fmt::format("; {} hosts of this segment by multicast, led by rank {}",
                            placement_.segment().size(), placement_.segment().front());
    if (placement_.segments().size() > 1)
        text += fmt::format("; {} segments by messages", placement_.segments().size());
    return text;
}

std::string LevelSet::describe_multicast() const {
    const engine::GroupConfig& config = engine_->config();
    const std::size_t hearing = engine_->graph().hearing_count();
    const std::string reach = hearing == 0
                                  ? std::string("no multicast, all is point-to-point")
                                  : fmt::format("multicast {} reaches {} of {} {}", port_.multicast().name(),
                                                hearing, config.members, several() ? "hosts" : "members");
    return fmt::format(
        "{}{}; fragments of {} bytes, window {}, repair {}, root synchronisation {}, round trip {} us", reach,
        no_multicast_.empty() ? std::string() : fmt::format(" (here: {})", no_multicast_),
        config.fragment_bytes, config.window, engine::name_of(config.repair),
        engine::name_of(config.root_sync), engine_->round_trip().value / 1000);
}

}  // namespace mcastcoll::group
