// What the members have agreed about the multicast, and for which operations it holds.
//
// The join ends with a verdict; later ones replace it. A new one holds from an operation on that nobody can
// have begun, so that all members use the same graph for an operation. Two graphs at a time are enough, since
// rank 0 passes no further verdict before nothing is left that the older one is good for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ballots.h"
#include "engine/config.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

class Verdicts {
  public:
    Verdicts(const GroupConfig& config, const RankList& children)
        : children_(children),
          graph_(config.members, config.relay ? config.range_of : std::vector<std::uint8_t>{}),
          next_graph_(graph_) {}

    // Who gets this operation from whom.
    const SupplyGraph& of(std::uint64_t operation) const {
        return operation < next_from_ ? graph_ : next_graph_;
    }
    const SupplyGraph& latest() const { return pending() ? next_graph_ : graph_; }
    // The verdict of the join is there.
    bool known() const { return known_; }
    // A later one is there, and the one before is still good for something.
    bool pending() const { return next_from_ != kNone; }
    // The first operation that the pending one holds for.
    std::uint64_t first_operation() const { return next_from_; }
    // How many followed that of the join.
    std::uint32_t version() const { return version_; }

    void take_first(Verdict verdict) {
        encode(verdict, bytes_);
        graph_.set_verdict(std::move(verdict));
        known_ = true;
    }
    // None may be pending.
    void take_next(Verdict verdict, std::uint64_t first_operation) {
        encode(verdict, bytes_);
        next_graph_.set_verdict(std::move(verdict));
        next_from_ = first_operation;
        ++version_;
        told_ = 0;
    }
    // Everybody has finished all operations below.
    void release_below(std::uint64_t operation) {
        if (operation <= next_from_) return;
        graph_.swap(next_graph_);
        next_from_ = kNone;
    }

    // The child that is to be told the latest; kNoRank: none.
    bool untold() const { return known_ && told_ < children_.count; }
    Rank next_to_tell() { return untold() ? children_.ranks[told_++] : kNoRank; }
    // As it is told.
    Bytes bytes() const { return bytes_; }

  private:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    const RankList children_;
    SupplyGraph graph_;       // of operations below next_from_
    SupplyGraph next_graph_;  // of the others
    std::uint64_t next_from_ = kNone;
    std::uint32_t version_ = 0;
    bool known_ = false;
    std::uint32_t told_ = 0;  // children that know the latest
    std::vector<std::byte> bytes_;
};

}  // namespace mcastcoll::engine
