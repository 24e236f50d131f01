// An election about the multicast: which members probe, the ballots, the rule that turns ballots into a
// reachability map (`ReachabilityMap`), and the map in force.
//
// Nearly every member receives nearly every probe, so only a voter that missed a probe casts a ballot. The
// votes of a subtree of any size then fit in one message. If the ballots do not fit, the group goes without
// multicast.
#pragma once

#include <vector>

#include "engine/config.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kAllProbeUpTo = 256;  // in groups up to this size every member probes
// Number of members that probe in larger groups, evenly spread.
inline constexpr std::uint32_t kSpeakersOfMany = 16;
inline constexpr std::uint32_t kNoSpeaker = UINT32_MAX;

// Members that probe in an election. In a group of more than kAllProbeUpTo members only kSpeakersOfMany
// probe, because probes from and to all members would be a storm. Each election shifts the speakers by one
// rank, and adds the member that the election request suspects.
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

// Votes of a subtree. Each voter that missed a speaker contributes a ballot: rank (4 bytes, big-endian) and a
// bitmap with one bit per received speaker (the voter's own bit is set). One more bit after the last
// speaker's is set if the voter cannot multicast.
class Ballots {
  public:
    // max_bytes: payload of a message; must have room for a ballot.
    Ballots(std::uint32_t members, std::uint32_t voters, std::size_t max_bytes);

    // Prepares for an election with these speakers.
    void begin(const Speakers& speakers) {
        speakers_ = speakers;
        used_ = 0;
        too_many_ = false;
    }
    const Speakers& speakers() const { return speakers_; }
    // received: an entry per speaker, or more.
    void cast(Rank voter, const std::vector<bool>& received, bool can_multicast);
    // Adds the ballots of a child's subtree. Malformed ballots change nothing and return false.
    bool merge(Bytes ballots, bool too_many);

    Bytes bytes() const { return Bytes(bytes_).first(used_); }
    // True if not all ballots fitted. judge() then returns a map without multicast.
    bool too_many() const { return too_many_; }

    // Computes the map. A speaker is mute if fewer than half of the members that receive any probe received
    // this speaker. A member is deaf if it received fewer than half of the speakers that are not mute. A
    // member outside the speakers is mute if its ballot says so or if `so_far` does.
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

// Writes a map for a message: deaf ranks, then mute ranks, 4 bytes each. The number of deaf ranks travels in
// the header.
void encode(const ReachabilityMap& map, std::vector<std::byte>& out);
// Returns false if the bytes are not a map of a group of this many members.
bool decode(Bytes bytes, std::uint32_t deaf_count, std::uint32_t members, ReachabilityMap& map);

// The reachability maps of the group, and the operations to which each applies.
//
// A new map applies from an operation that no member can have begun, so that all members use the same supply
// graph for each operation. Rank 0 distributes a new map only when no operation is left of the map before the
// current map, so two maps are enough.
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
    // All members have finished the operations below.
    void release_below(std::uint64_t operation) {
        if (operation <= next_from_) return;
        std::swap(graph_, next_graph_);
        next_from_ = kNone;
    }

    // The next child that needs the latest map, or kNoRank.
    bool must_inform() const { return !uninformed_.over(); }
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
