// The speakers of an election: the members that multicast probes (test datagrams). In a group of more than
// kAllProbeUpTo members only kSpeakersOfMany probe, because probes from and to all members would be a storm.
// Each election shifts the speakers by one rank, and adds the member that the election request suspects.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kAllProbeUpTo = 256;  // in groups up to this size every member probes
// Number of members that probe in larger groups, evenly spread.
inline constexpr std::uint32_t kSpeakersOfMany = 16;
inline constexpr std::uint32_t kNoSpeaker = UINT32_MAX;

class Speakers {
  public:
    // suspected: a suspected member, which probes in addition to the regular ones. Ignored if the rank probes
    // anyway or is outside the group.
    explicit Speakers(std::uint32_t members, std::uint64_t election = 0, Rank suspected = kNoRank);

    static std::uint32_t max(std::uint32_t members) {
        return members <= kAllProbeUpTo ? members : kSpeakersOfMany + 1;
    }
    std::uint32_t count() const { return regular_ + (suspected_ == kNoRank ? 0 : 1); }
    Rank rank(std::uint32_t speaker) const {
        return speaker == regular_ ? suspected_ : rank_of((first_of(speaker) + shift_) % members_);
    }
    // Index of the rank among the speakers, or kNoSpeaker.
    std::uint32_t place(Rank rank) const;
    Rank suspected() const { return suspected_; }

  private:
    std::uint64_t first_of(std::uint32_t speaker) const {
        return std::uint64_t{speaker} * members_ / regular_;
    }

    std::uint32_t members_, regular_, shift_;
    Rank suspected_ = kNoRank;
};

}  // namespace mcastcoll::engine
