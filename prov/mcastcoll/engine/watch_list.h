// The members whose processes somebody is to watch: each asked for once, as far as this remembers. Who falls
// out of its memory may be asked for again, which does no harm.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ring.h"
#include "base/types.h"

namespace mcastcoll::engine {

class WatchList {
  public:
    explicit WatchList(std::size_t most) : asked_(most, kNoRank), due_(most) {}

    void ask(Rank rank) {
        if (std::find(asked_.begin(), asked_.end(), rank) != asked_.end() || !due_.push(rank)) return;
        asked_[next_++ % asked_.size()] = rank;
    }
    // Who is to be watched next; kNoRank: nobody.
    Rank take() {
        if (due_.empty()) return kNoRank;
        const Rank rank = due_.front();
        due_.pop();
        return rank;
    }

  private:
    std::vector<Rank> asked_;  // the latest
    std::size_t next_ = 0;
    Ring<Rank> due_;
};

}  // namespace mcastcoll::engine
