// The reachability maps of the group, and the operations to which each applies.
//
// A new map applies from an operation that no member can have begun, so that all members use the same supply
// graph for each operation. Rank 0 distributes a new map only when no operation is left of the map before the
// current map, so two maps are enough.
#pragma once

#include <vector>

#include "engine/group_config.h"
#include "engine/round.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

class ReachabilityMaps {
  public:
    ReachabilityMaps(const GroupConfig& config, const RankList& children)
        : graph_(config.members, config.relay ? config.range_of : std::vector<std::uint8_t>{}),
          next_graph_(graph_),
          uninformed_(children) {}

    // The supply graph of this operation.
    const SupplyGraph& of(std::uint64_t operation) const {
        return operation < next_from_ ? graph_ : next_graph_;
    }
    const SupplyGraph& latest() const { return pending() ? next_graph_ : graph_; }
    // True while a new map waits for the last operations of its predecessor.
    bool pending() const { return next_from_ != kNone; }
    // The first operation of the pending map.
    std::uint64_t first_operation() const { return next_from_; }
    // Number of maps since that of the join.
    std::uint32_t version() const { return version_; }

    void take_first(ReachabilityMap map) {
        announce(map);
        graph_.set_map(std::move(map));
    }
    // Requires that no map is pending.
    void take_next(ReachabilityMap map, std::uint64_t first_operation) {
        announce(map);
        next_graph_.set_map(std::move(map));
        next_from_ = first_operation;
        ++version_;
    }
    // All members have finished the operations below `operation`.
    void release_below(std::uint64_t operation) {
        if (operation <= next_from_) return;
        std::swap(graph_, next_graph_);
        next_from_ = kNone;
    }

    bool must_inform() const { return !uninformed_.over(); }
    // Returns the next child that needs the latest map, or kNoRank.
    Rank next_to_inform() { return uninformed_.next(); }
    // The latest map as encoded for messages.
    Bytes bytes() const { return bytes_; }

  private:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    void announce(const ReachabilityMap& map) {
        encode(map, bytes_);
        uninformed_.begin();
    }

    SupplyGraph graph_;       // operations below next_from_
    SupplyGraph next_graph_;  // operations from next_from_ on
    std::uint64_t next_from_ = kNone;
    std::uint32_t version_ = 0;
    Round uninformed_;  // children that need the latest map
    std::vector<std::byte> bytes_;
};

}  // namespace mcastcoll::engine
