// Iterates over a member's children to send each the same message.
#pragma once

#include <cstdint>

#include "engine/rank_list.h"

namespace mcastcoll::engine {

class Round {
  public:
    explicit Round(const RankList& children) : children_(children), informed_(children.count) {}
    void begin() { informed_ = 0; }
    // All children have been sent the message.
    bool over() const { return informed_ == children_.count; }
    Rank next() { return over() ? kNoRank : children_.ranks[informed_++]; }

  private:
    const RankList children_;
    std::uint32_t informed_;
};

}  // namespace mcastcoll::engine
