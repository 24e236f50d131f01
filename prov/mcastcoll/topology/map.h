// The clusters of a group at each level, computed from the members' places. Every host leader computes the
// same map from the same places and policy, so no agreement is needed.
//
// Clusters are nested: a cluster lies in one cluster of the next outer level, and two members share a cluster
// if they share all outer clusters and the coordinate. A member without the coordinate of
//
// - the site or segment shares a cluster with the other members without it (the join's probe finds out
//   whether multicast reaches them);
// - the host is alone, because nothing shows that it can share memory;
// - a level inside the host is alone if no deeper level is known either (an unbound process). Otherwise the
//   machine does not have the level, and the member shares a cluster with the other such members.
//
// If the processes of a host have different segments, the segment of the host's first rank counts for all of
// them: only one process of a host needs the multicast.
//
// A level connects, in each of its clusters, the clusters of the next inner level. The innermost level
// connects processes, and so does the host, whatever is inside it. A level with a single inner cluster
// everywhere makes no connections and is left out of the tree (MPICH-G's rule), as reported by why(). One
// level represents several levels that divide the members alike.
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

    // The levels that make connections, outermost first; empty for a group of one member.
    std::span<const Level> levels() const { return levels_; }
    bool connects(Level level) const { return connecting_.has(level); }
    // Returns a text for the user about the level's connections, or about the reason why the tree leaves out
    // the level.
    std::string why(Level level) const;

    // Clusters have dense numbers in the order of their first ranks. The functions below work for levels that
    // the tree leaves out, too.
    std::size_t clusters(Level level) const { return at(level).starts.size() - 1; }
    std::uint32_t cluster(Rank rank, Level level) const { return at(level).cluster_of[index_of(rank)]; }
    // Returns the cluster's members in ascending order; empty for a cluster that does not exist.
    std::span<const Rank> members_of(Level level, std::uint32_t cluster) const;

    // Returns the cluster's leader: the operation's root if the root belongs to the cluster, otherwise the
    // lowest rank.
    Rank leader(Level level, std::uint32_t cluster, Rank root = kNoRank) const;
    // Returns the leaders of the inner clusters that this level connects in one cluster, in the order of the
    // inner clusters' numbers. In a segment these leaders are the members that take part in the multicast.
    std::vector<Rank> connected_by(Level level, std::uint32_t cluster, Rank root = kNoRank) const;

    // A cluster's name for users: "A", "10.0.0.0/24", "package 1"; empty if it has none.
    std::string title(Level level, std::uint32_t cluster) const;

  private:
    struct Partition {
        std::vector<std::uint32_t> cluster_of;  // by rank
        std::vector<Rank> members;              // by cluster, then rank
        std::vector<std::uint32_t> starts;      // of each cluster in `members`, and the end
    };

    void name_levels();
    const Partition& at(Level level) const { return partitions_[index_of(level)]; }
    // The partition into the units that this level connects.
    const Partition& below(Level level) const { return partitions_[below_[index_of(level)]]; }

    std::size_t members_ = 0;
    Policy policy_;
    LevelSet known_;       // levels for which some member has a coordinate
    LevelSet connecting_;  // the same as levels_
    std::vector<Level> levels_;
    std::array<Level, kLevels> representatives_{};  // by level: represents all levels that divide alike
    std::array<std::uint8_t, kLevels> below_{};     // by level: index of the next different partition
    std::vector<Partition> partitions_;             // of each level, then the single members
    std::vector<Place> firsts_;                     // places by rank, for titles
};

// A process's report to mcastcoll-topo about its groups (job_report.h).
struct ReportedLevel {
    Level level{};
    bool connects = false;
    std::string transport;  // "multicast", "shared memory", "messages"
    std::string algorithm;  // "flat"
    std::string why;        // one sentence
};

// Describes the levels according to the map and its policy. A group that connects a level in another way
// corrects the level's entry.
std::vector<ReportedLevel> describe_levels(const Map& map);

// Counters since the start, by name.
using Counts = std::vector<std::pair<std::string, std::uint64_t>>;

struct ReportedGroup {
    std::uint64_t key = 0;
    Rank rank{};  // rank of the reporting process
    std::uint32_t members = 0;
    // Of all members. Only host leaders report places, so that a host's reports do not grow with the square
    // of its processes; the list is empty elsewhere.
    std::vector<Place> places;
    Policy policy;
    std::vector<ReportedLevel> levels;
    std::string state;  // "ready", "failed: ..."
    Counts counters;
    Rank awaited = kNoRank;  // member awaited by an open operation
};

}  // namespace mcastcoll::topology
