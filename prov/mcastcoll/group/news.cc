// Log sentences about a group's start, engine, operations and end; counters; the report for mcastcoll-topo.
#include <fmt/core.h>

#include <cerrno>

#include "group/group.h"

namespace mcastcoll::group {
namespace {

std::string describe(const engine::RepairMode& mode) {
    if (mode.chained) return "forwarding along the ring from the start";
    const char* first =
        mode.route == engine::Route::root ? "requests to the root" : "requests along the ring";
    return fmt::format("{}{}", first, mode.forwards ? " and forwarding" : "");
}

std::string about_repair(const engine::PolicyState& policy) {
    return fmt::format(
        "repair is now {} for small messages and {} for large messages: the ring successor requested {} of "
        "1000 small messages, and the multicast lost {} of 1000 fragments of large messages; a repair takes "
        "{} us along the ring, {} us by the root",
        describe(policy.small), describe(policy.large), policy.successor_naks, policy.large_missed,
        policy.ring_repair.value / 1000, policy.root_repair.value / 1000);
}

std::string about_redundancy(const engine::RedundancyState& state) {
    const auto percent = [](std::uint64_t millionths) { return static_cast<double>(millionths) / 10'000; };
    const engine::Spares& spares = state.spares;
    std::string bought =
        spares.copies > 0
            ? fmt::format("short messages are multicast {} times{}", spares.copies + 1,
                          spares.spread ? ", with pauses in between, since losses come in bursts" : "")
            : "";
    if (spares.parity) bought += bought.empty() ? "longer messages have parity" : ", longer ones have parity";
    if (bought.empty()) bought = "no copies and no parity";
    return fmt::format(
        "redundancy: {}; on average {:.4f} members miss a datagram, the worst member loses {:.2f} %, this "
        "member {:.2f} %",
        bought, static_cast<double>(state.group.lacking) / engine::kMillion, percent(state.group.worst),
        percent(state.own.worst));
}

// ranks: the group ranks of the engine's members.
std::string about_multicast(const engine::Engine& engine, std::span<const std::uint32_t> ranks) {
    const engine::SupplyGraph& graph = engine.graph();
    const engine::ReachabilityMap& map = graph.map();
    std::string who;
    for (const auto& [what, members] : {std::pair{"not receiving", &map.deaf}, {"not received", &map.mute}}) {
        if (members->empty()) continue;
        who += fmt::format("; {} {}: rank {}", members->size(), what, ranks[index_of(members->front())]);
        if (members->size() > 1) who += ", ...";
    }
    const std::string reach =
        map.works ? fmt::format("{} of {} members receive", graph.receiver_count(), ranks.size())
                  : std::string("no member receives, so all data goes point-to-point");
    return fmt::format("multicast reachability changed (election {}): {}{}", engine.map_version(), reach,
                       who);
}

}  // namespace

void LevelSet::log_engine() {
    if (!engine_) return;
    if (engine_->counters().policy_changes != logged_policy_changes_) {
        logged_policy_changes_ = engine_->counters().policy_changes;
        port_.explain(about_repair(engine_->policy()));
    }
    if (engine_->counters().redundancy_changes != logged_redundancy_changes_) {
        logged_redundancy_changes_ = engine_->counters().redundancy_changes;
        port_.explain(about_redundancy(engine_->redundancy()));
    }
    if (engine_->config().root_sync == engine::RootSync::adaptive &&
        engine_->root_sync().present != logged_root_sync_) {
        const engine::RootSyncState sync = engine_->root_sync();
        logged_root_sync_ = sync.present;
        port_.explain(fmt::format(
            "root synchronisation is now {}: other members requested data of {} of 1000 broadcasts "
            "of this member, and enter a broadcast {} us after this member",
            name_of(sync.present), sync.degraded, sync.lateness.value / 1000));
    }
    if (engine_->map_version() == logged_map_) return;
    logged_map_ = engine_->map_version();
    port_.explain(about_multicast(*engine_, placement_.segment()));
}

void LevelSet::log_joined() const {
    if (placement_.members() == 1) return port_.explain("joined as the only member");
    const std::vector<std::uint32_t>& segment = placement_.segment();
    std::string text = fmt::format("joined as rank {}", placement_.self());
    if (placement_.host().size() > 1)
        text += fmt::format("; {} processes of this host by shared memory, led by rank {}",
                            placement_.host().size(), placement_.host().front());
    if (several() && segment.size() > 1)
        text += fmt::format("; {} hosts of this segment by multicast, led by rank {}", segment.size(),
                            segment.front());
    if (placement_.segments().size() > 1)
        text += fmt::format("; {} segments by messages", placement_.segments().size());
    if (placement_.hosts() > 1) text += fmt::format("; {}", protection_.describe());
    if (!engine_) return port_.explain(text);
    const engine::GroupConfig& config = engine_->config();
    const std::size_t receiving = engine_->graph().receiver_count();
    const std::string reach = receiving == 0
                                  ? std::string("no multicast, so all data goes point-to-point")
                                  : fmt::format("multicast {} reaches {} of {} {}", port_.multicast().name(),
                                                receiving, config.members, several() ? "hosts" : "members");
    port_.explain(
        fmt::format("{}: {}{}; fragments of {} bytes, window {} fragments, repair {}, redundancy {}, root "
                    "synchronisation {}, round trip {} us",
                    text, reach,
                    no_multicast_.empty() ? std::string()
                                          : fmt::format(" (this member has no multicast: {})", no_multicast_),
                    config.fragment_bytes, config.window, engine::name_of(config.repair),
                    engine::name_of(config.redundancy), engine::name_of(config.root_sync),
                    engine_->round_trip().value / 1000));
    if (receiving == 0 || receiving == segment.size()) return;
    for (std::size_t i = 0; i < segment.size(); ++i)
        if (engine_->graph().deaf(rank_of(i)))
            port_.explain(fmt::format(
                "rank {} does not receive the multicast and gets its data point-to-point", segment[i]));
}

void LevelSet::log_selection() {
    const auto news = planner_->poll_news();
    if (!news || placement_.members() == 1) return;
    port_.explain(
        fmt::format("{} of {} bytes over {} members on {} hosts: uses {} ({})", levels::name_of(news->kind),
                    news->bytes, placement_.members(), placement_.hosts(), levels::to_text(news->choice),
                    placement_.hosts() == 1 ? "one host: shared memory" : "rank 0's table of algorithms"));
}

std::string LevelSet::describe_loss(int error, Rank lost, const std::string* reason) const {
    if (lost == kNoRank) return {};
    std::string at = port_.address_of(lost);
    // Only host leaders have the hosts' names.
    if (index_of(lost) < places_.size()) {
        const topology::Place place = decode_place(places_[index_of(lost)]);
        const auto& host = place.at(topology::Level::host);
        if (host && !host->name.empty()) at += fmt::format(" on host {}", host->name.view());
    }
    if (error == ETIMEDOUT) return fmt::format("waited for rank {} at {}", index_of(lost), at);
    const char* otherwise = lost == lost_here()   ? "its process has ended"
                            : error == ECONNRESET ? "its process has ended, as another rank has detected"
                            : error == EHOSTDOWN  ? "its host did not respond, as another rank has detected"
                                                  : "reported by another rank";
    return fmt::format("lost rank {} at {}: {}", index_of(lost), at,
                       reason != nullptr ? reason->c_str() : otherwise);
}

void LevelSet::add_counters(engine::Counters& sum, LevelCounters& levels) const {
    if (engine_) engine::add(sum, engine_->counters());
    if (host_level_) host_level_->add_counters(levels);
    const levels::CompositeCounters& composites = planner_->counters();
    levels.group_operations += composites.operations;
    levels.group_bytes += composites.bytes;
    levels.operations_by_reduction += composites.reductions;
    levels.unproven_packets += unproven_;
    levels.operations_by_chains += composites.chains;
    levels.operations_by_split += composites.splits;
    levels.block_bytes_broadcast += composites.block_bytes_broadcast;
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
    report.members = placement_.members();
    for (const wire::ByteString& place : places_) report.places.push_back(decode_place(place));
    report.policy = policy_;
    report.levels = connections_;
    for (topology::ReportedLevel& level : report.levels) {
        if (level.level == topology::Level::host && host_level_) {
            level.transport = "shared memory";
            level.why = host_level_->explain();
        } else if (level.level == topology::Level::segment && engine_ && engine_joined_) {
            const std::size_t receiving = engine_->graph().receiver_count();
            level.transport = receiving > 0 ? "multicast" : "messages";
            level.algorithm = std::string(engine::name_of(engine_->config().repair));
            level.why = no_multicast_.empty()
                            ? fmt::format("multicast {} reaches {} of {} hosts", port_.multicast().name(),
                                          receiving, engine_->config().members)
                            : no_multicast_;
        }
    }
    return report;
}

topology::ReportedGroup Group::report() const {
    topology::ReportedGroup report = levels_->report();
    if (busy() && levels_->waits_outside_engine()) report.awaited = levels_->awaited();
    report.state = error() != 0 ? "failed: " + port_.text_of(error()) : joined() ? "ready" : "forming";
    return report;
}

}  // namespace mcastcoll::group
