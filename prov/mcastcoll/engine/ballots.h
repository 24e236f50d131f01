// An election about the multicast: who speaks, what a ballot says, and the judge.
//
// Nearly everybody hears nearly everybody, so ballots say only who does not: a subtree's votes fit in one
// message whatever its size. In large groups some members speak for all, because probes of all to all would
// be a storm.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kEverybodySpeaks = 256;  // members up to which all of them probe
inline constexpr std::uint32_t kSpeakersOfMany = 16;    // how many probe in larger groups, evenly spread
inline constexpr std::uint32_t kNoSpeaker = UINT32_MAX;

std::uint32_t speaker_count(std::uint32_t members);
Rank speaker_rank(std::uint32_t speaker, std::uint32_t members);
// kNoSpeaker when the rank does not speak.
std::uint32_t speaker_of(Rank rank, std::uint32_t members);

// The votes of a subtree: for every voter that did not hear all speakers its rank (4 bytes, big-endian) and a
// bitmap of whom it did hear, itself included. One bit behind the last speaker's says that it cannot
// multicast.
class Ballots {
  public:
    // most_bytes: what a message can carry. Needs room for one ballot at least.
    Ballots(std::uint32_t members, std::uint32_t voters, std::size_t most_bytes);

    // Before the next election.
    void clear() {
        used_ = 0;
        too_many_ = false;
    }
    // heard: one entry per speaker.
    void cast(Rank voter, const std::vector<bool>& heard, bool can_multicast);
    // Takes over the ballots of a child's subtree; false, and nothing changes, when they make no sense.
    bool merge(Bytes ballots, bool too_many);

    Bytes bytes() const { return Bytes(bytes_).first(used_); }
    // There were more than fit. Who could judge a network like that: the group goes without multicast.
    bool too_many() const { return too_many_; }

    // A speaker is mute when fewer than half of those who hear anything heard it; a member is deaf when it
    // heard fewer than half of the others that are not mute. Of members that do not speak only those are
    // known to be mute that said so.
    Verdict judge() const;

  private:
    Rank voter(std::size_t ballot) const;
    bool heard(std::size_t ballot, std::uint32_t speaker) const;
    bool listens(std::size_t ballot) const;
    bool is_mute(std::uint32_t speaker) const;
    std::size_t count() const { return used_ / ballot_bytes_; }

    std::uint32_t members_, speakers_;
    std::size_t ballot_bytes_, used_ = 0;
    std::vector<std::byte> bytes_;
    bool too_many_ = false;
};

// A verdict in a message: deaf ranks, then mute ranks, 4 bytes each; their number goes into the header.
void encode(const Verdict& verdict, std::vector<std::byte>& out);
// False when the bytes are no verdict of a group of so many.
bool decode(Bytes bytes, std::uint32_t deaf_count, std::uint32_t members, Verdict& verdict);

}  // namespace mcastcoll::engine
