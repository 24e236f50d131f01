// How a group has failed for a member, and who of the others is still to be told.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/types.h"

namespace mcastcoll::engine {

class Failure {
  public:
    Failure(Rank self, std::uint32_t members) : self_(self), members_(members), next_(members) {}

    // Because of this member, or kNoRank. tell: the others may not know. lingered: this member has lost
    // nothing, and leaves when they do.
    void begin(Rank lost, int error, bool tell, bool lingered = false) {
        lingered_ = lingered;
        lost_ = lost;
        error_ = error;
        next_ = tell ? 0 : members_;
    }
    int error() const { return error_; }  // 0: it has not
    Rank lost() const { return lost_; }

    // Who is to be told next; kNoRank: nobody.
    Rank next() {
        while (next_ < members_) {
            const Rank to = rank_of(next_++);
            // Who is dead cannot be told; who only made others wait too long can.
            if (to != self_ && (to != lost_ || error_ == ETIMEDOUT)) return to;
        }
        return kNoRank;
    }
    bool take_lingered() { return std::exchange(lingered_, false); }
    bool told() const { return next_ == members_; }

  private:
    const Rank self_;
    const std::uint32_t members_;
    Rank lost_ = kNoRank;
    int error_ = 0;
    bool lingered_ = false;
    std::uint32_t next_;  // members before have been told
};

}  // namespace mcastcoll::engine
