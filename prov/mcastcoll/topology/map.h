// The clusters of a group at each level, from its members' places. Every host's leader computes the same map
// from the same places and policy, so nothing has to be agreed on.
//
// Clusters are nested: a cluster at a level lies in one cluster of the level outside it, and two members
// share one when they share all that is outside and the coordinate. Who lacks the coordinate of
//
// - the site or segment shares a cluster with the others who lack it (the join's probe tells whether they
//   hear each other);
// - the host is alone: nothing says that it shares memory with anybody;
// - a level inside the host is alone if nothing deeper is known of it either (a process that is bound to
//   nothing), else shares a cluster with its like (a machine without such a level).
//
// A process that knows another segment than the first rank of its host is counted to that rank's: only one
// process of a host needs the multicast.
//
// What a level connects are the clusters of the next one that lie in one of its own; the innermost connects
// processes, and so does the host, whatever is inside it. A level that finds only one in each connects
// nothing and is kept out of the tree (MPICH-G's rule); why() says so. Of levels that divide alike one speaks
// for all.
#pragma once

#include <span>

#include "topology/policy.h"

namespace mcastcoll::topology {

class Map {
  public:
    // Places in rank order, at least one.
    Map(std::span<const Place> places, const Policy& policy);

    std::size_t members() const { return members_; }
    const Policy& policy() const { return policy_; }

    // The levels that connect something, outside in; empty for a group of one.
    std::span<const Level> levels() const { return levels_; }
    bool connects(Level level) const { return connecting_.has(level); }
    // One sentence: what the level connects, or why it is not in the tree.
    std::string why(Level level) const;

    // Clusters have dense numbers in the order of their first ranks. These answer for all levels, also those
    // that connect nothing or do not count.
    std::size_t clusters(Level level) const { return at(level).starts.size() - 1; }
    std::uint32_t cluster(Rank rank, Level level) const { return at(level).cluster_of[index_of(rank)]; }
    // In ascending order, none for a cluster that does not exist.
    std::span<const Rank> members_of(Level level, std::uint32_t cluster) const;

    // Who speaks for a cluster: its lowest rank, or the root of the operation where that is a member.
    Rank leader(Level level, std::uint32_t cluster, Rank root = kNoRank) const;
    // Leaders of what this level connects in one of its clusters, by their clusters' numbers: of a segment
    // those who multicast in it.
    std::vector<Rank> connected_by(Level level, std::uint32_t cluster, Rank root = kNoRank) const;

    // What people call a cluster: "A", "10.0.0.0/24", "package 1"; empty where it has no name.
    std::string title(Level level, std::uint32_t cluster) const;

  private:
    struct Partition {
        std::vector<std::uint32_t> cluster_of;  // by rank
        std::vector<Rank> members;              // by cluster, then rank
        std::vector<std::uint32_t> starts;      // of each cluster in `members`, and the end
    };

    void name_levels();
    const Partition& at(Level level) const { return partitions_[index_of(level)]; }
    // Divides what this level connects.
    const Partition& below(Level level) const { return partitions_[below_[index_of(level)]]; }

    std::size_t members_ = 0;
    Policy policy_;
    LevelSet known_;       // some member has a coordinate
    LevelSet connecting_;  // the same as levels_
    std::vector<Level> levels_;
    std::array<Level, kLevels> speakers_{};      // by level: whoever speaks for all that divide alike
    std::array<std::uint8_t, kLevels> below_{};  // by level: the next partition that is another one
    std::vector<Partition> partitions_;          // of each level, and after them the single members
    std::vector<Place> firsts_;                  // places, for titles
};

// What a process tells mcastcoll-topo of its groups (report.h).
struct ReportedLevel {
    Level level{};
    bool connects = false;
    std::string lane;       // what carries it: "multicast", "shared memory", "messages"
    std::string algorithm;  // "flat"
    std::string why;        // one sentence
};

// What the map and its policy have to say, to be corrected where the group does otherwise.
std::vector<ReportedLevel> describe_levels(const Map& map);

// How often something has happened since the start, by its name.
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

struct ReportedGroup {
    std::uint64_t key = 0;
    Rank rank{};  // of the process that reports
    std::uint32_t members = 0;
    // Of all of them. Only who leads its host says them, so that a host's reports do not grow with the square
    // of its processes; the others' are empty.
    std::vector<Place> places;
    Policy policy;
    std::vector<ReportedLevel> levels;
    std::string state;  // "ready", "failed: ..."
    Counts counters;
    Rank awaited = kNoRank;  // by an operation that is under way
};

}  // namespace mcastcoll::topology
