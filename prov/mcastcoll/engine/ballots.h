// An election about the multicast: the ballots, and the rule that turns ballots into a reachability map
// (`ReachabilityMap`).
//
// Nearly every member receives nearly every probe, so only a voter that missed a probe casts a ballot. The
// votes of a subtree of any size then fit in one message. If the ballots do not fit, the group goes without
// multicast.
#pragma once

#include <vector>

#include "engine/reachability_map.h"
#include "engine/speakers.h"

namespace mcastcoll::engine {

// Votes of a subtree. Each voter that missed a speaker (a member that sends probes, speakers.h) contributes a
// ballot: rank (4 bytes, big-endian) and a bitmap with one bit per received speaker (the voter's own bit is
// set). One more bit after the last speaker's is set if the voter cannot multicast.
class Ballots {
  public:
    // max_bytes: longest payload of a message, at least the size of a ballot.
    Ballots(std::uint32_t members, std::uint32_t voters, std::size_t max_bytes);

    // Prepares for an election with these speakers.
    void begin(const Speakers& speakers) {
        speakers_ = speakers;
        used_ = 0;
        too_many_ = false;
    }
    const Speakers& speakers() const { return speakers_; }
    // received: whether each speaker was received; may have more entries than there are speakers.
    void cast(Rank voter, const std::vector<bool>& received, bool can_multicast);
    // Adds the ballots of a child's subtree. Malformed ballots change nothing and return false.
    bool merge(Bytes ballots, bool too_many);

    Bytes bytes() const { return Bytes(bytes_).first(used_); }
    // True if not all ballots fitted. judge() then returns a map without multicast.
    bool too_many() const { return too_many_; }

    // Computes the map. A speaker is mute if fewer than half of the members that receive any probe received
    // this speaker. A member is deaf if it received fewer than half of the speakers that are not mute. A
    // member outside the speakers is mute if its ballot says that it cannot multicast, or if the map `so_far`
    // lists it as mute.
    ReachabilityMap judge(const ReachabilityMap& so_far) const;

  private:
    Rank voter(std::size_t ballot) const;
    bool received(std::size_t ballot, std::uint32_t speaker) const;
    bool listens(std::size_t ballot) const;
    bool is_mute(std::uint32_t speaker) const;
    std::size_t count() const { return used_ / ballot_bytes_; }

    std::uint32_t members_;
    Speakers speakers_;
    std::size_t ballot_bytes_, used_ = 0;
    std::vector<std::byte> bytes_;
    bool too_many_ = false;
};

}  // namespace mcastcoll::engine
