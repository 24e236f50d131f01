// An election about the multicast: who speaks, what a ballot says, the judge, and what came of it.
//
// Nearly everybody hears nearly everybody, so ballots say only who does not: a subtree's votes fit in one
// message whatever its size.
#pragma once

#include <vector>

#include "engine/config.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

inline constexpr std::uint32_t kEverybodySpeaks = 256;  // members up to which all of them probe
inline constexpr std::uint32_t kSpeakersOfMany = 16;    // how many probe in larger groups, evenly spread
inline constexpr std::uint32_t kNoSpeaker = UINT32_MAX;

// Who probes in an election. In large groups some members speak for all, because probes of all to all would
// be a storm: in every election the rank behind each that spoke in the last, and one more that is doubted.
class Speakers {
  public:
    // doubted: who speaks as well, unless it does so anyway or is no member.
    explicit Speakers(std::uint32_t members, std::uint64_t election = 0, Rank doubted = kNoRank);

    static std::uint32_t most(std::uint32_t members) {
        return members <= kEverybodySpeaks ? members : kSpeakersOfMany + 1;
    }
    std::uint32_t count() const { return regular_ + (doubted_ == kNoRank ? 0 : 1); }
    Rank rank(std::uint32_t speaker) const {
        return speaker == regular_ ? doubted_ : rank_of((first_of(speaker) + shift_) % members_);
    }
    // kNoSpeaker when the rank does not speak.
    std::uint32_t place(Rank rank) const;
    Rank doubted() const { return doubted_; }

  private:
    std::uint64_t first_of(std::uint32_t speaker) const {
        return std::uint64_t{speaker} * members_ / regular_;
    }

    std::uint32_t members_, regular_, shift_;
    Rank doubted_ = kNoRank;
};

// The votes of a subtree: for every voter that did not hear all speakers its rank (4 bytes, big-endian) and a
// bitmap of whom it did hear, itself included. One bit behind the last speaker's says that it cannot
// multicast.
class Ballots {
  public:
    // most_bytes: what a message can carry. Needs room for one ballot at least.
    Ballots(std::uint32_t members, std::uint32_t voters, std::size_t most_bytes);

    // Before an election in which these speak.
    void begin(const Speakers& speakers) {
        speakers_ = speakers;
        used_ = 0;
        too_many_ = false;
    }
    const Speakers& speakers() const { return speakers_; }
    // heard: an entry for each speaker, or more.
    void cast(Rank voter, const std::vector<bool>& heard, bool can_multicast);
    // Takes over the ballots of a child's subtree; false, and nothing changes, when they make no sense.
    bool merge(Bytes ballots, bool too_many);

    Bytes bytes() const { return Bytes(bytes_).first(used_); }
    // There were more than fit. Who could judge a network like that: the group goes without multicast.
    bool too_many() const { return too_many_; }

    // A speaker is mute when fewer than half of those who hear anything heard it; a member is deaf when it
    // heard fewer than half of the others that are not mute. Of members that do not speak those are mute
    // that said so, or that were so far.
    Verdict judge(const Verdict& so_far) const;

  private:
    Rank voter(std::size_t ballot) const;
    bool heard(std::size_t ballot, std::uint32_t speaker) const;
    bool listens(std::size_t ballot) const;
    bool is_mute(std::uint32_t speaker) const;
    std::size_t count() const { return used_ / ballot_bytes_; }

    std::uint32_t members_;
    Speakers speakers_;
    std::size_t ballot_bytes_, used_ = 0;
    std::vector<std::byte> bytes_;
    bool too_many_ = false;
};

// A verdict in a message: deaf ranks, then mute ranks, 4 bytes each; their number goes into the header.
void encode(const Verdict& verdict, std::vector<std::byte>& out);
// False when the bytes are no verdict of a group of so many.
bool decode(Bytes bytes, std::uint32_t deaf_count, std::uint32_t members, Verdict& verdict);

// What the members have agreed about the multicast, and for which operations it holds.
//
// A later one holds from an operation on that nobody can have begun, so that all members use the same graph
// for an operation. Rank 0 passes none before nothing is left that the last but one is good for.
class Verdicts {
  public:
    Verdicts(const GroupConfig& config, const RankList& children)
        : graph_(config.members, config.relay ? config.range_of : std::vector<std::uint8_t>{}),
          next_graph_(graph_),
          untold_(children) {}

    // Who gets this operation from whom.
    const SupplyGraph& of(std::uint64_t operation) const {
        return operation < next_from_ ? graph_ : next_graph_;
    }
    const SupplyGraph& latest() const { return pending() ? next_graph_ : graph_; }
    // A later one is there, and the one before is still good for something.
    bool pending() const { return next_from_ != kNone; }
    // The first operation that the pending one holds for.
    std::uint64_t first_operation() const { return next_from_; }
    // How many followed that of the join.
    std::uint32_t version() const { return version_; }

    void take_first(Verdict verdict) {
        announce(verdict);
        graph_.set_verdict(std::move(verdict));
    }
    // None may be pending.
    void take_next(Verdict verdict, std::uint64_t first_operation) {
        announce(verdict);
        next_graph_.set_verdict(std::move(verdict));
        next_from_ = first_operation;
        ++version_;
    }
    // Everybody has finished all operations below.
    void release_below(std::uint64_t operation) {
        if (operation <= next_from_) return;
        std::swap(graph_, next_graph_);
        next_from_ = kNone;
    }

    // The child that is to be told the latest; kNoRank: none.
    bool untold() const { return !untold_.over(); }
    Rank next_to_tell() { return untold_.next(); }
    // As it is told.
    Bytes bytes() const { return bytes_; }

  private:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    void announce(const Verdict& verdict) {
        encode(verdict, bytes_);
        untold_.begin();
    }

    SupplyGraph graph_;       // of operations below next_from_
    SupplyGraph next_graph_;  // of the others
    std::uint64_t next_from_ = kNone;
    std::uint32_t version_ = 0;
    Round untold_;  // of the latest
    std::vector<std::byte> bytes_;
};

}  // namespace mcastcoll::engine
