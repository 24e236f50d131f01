// What has to be the same for all members of a group, or they would not compute the same tree: which levels
// count and how each is connected. Rank 0's word travels in the welcome.
//
// How the clusters inside a cluster are connected goes by name: a table of shapes behind one type. A shape
// says who the parent of the i-th of n nodes is, node 0 being the root. Each level takes the shapes that it
// carries out, and no others.
#pragma once

#include "topology/place.h"

namespace mcastcoll::topology {

struct Shape {
    std::string_view name;
    std::size_t (*parent_of)(std::size_t node, std::size_t arity);  // of a node other than 0
    Level outermost, innermost;
};

// One entry of the table, with the arity of those that have one.
struct Algorithm {
    static constexpr std::uint8_t kMostArity = 64;
    static constexpr std::uint8_t kMostSegmentArity = 8;

    std::uint8_t number = 0;
    std::uint8_t arity = 0;

    const Shape& shape() const;
    std::size_t parent_of(std::size_t node) const { return shape().parent_of(node, arity); }
    bool allowed_at(Level level) const {
        return level >= shape().outermost && level <= shape().innermost && arity <= most_arity(level);
    }
    static constexpr std::uint8_t most_arity(Level level) {
        return level == Level::segment ? kMostSegmentArity : kMostArity;
    }
    // "flat", "4-ary"
    std::string name() const;
    bool operator==(const Algorithm&) const = default;
};

std::optional<Algorithm> algorithm_named(std::string_view name);
// Nothing when there is no such shape or arity.
std::optional<Algorithm> algorithm_of(std::uint8_t shape, std::uint8_t arity);
// "flat, chain, ..." that may be used at this level.
std::string algorithm_names(Level level);

// The algorithm of each level: wan and site flat, segment multicast, the host and what is in it shm.
class Algorithms {
  public:
    Algorithms();
    Algorithm at(Level level) const { return at_[index_of(level)]; }
    void set(Level level, Algorithm algorithm) { at_[index_of(level)] = algorithm; }
    bool operator==(const Algorithms&) const = default;

  private:
    std::array<Algorithm, kLevels> at_{};
};

struct Policy {
    // One level only: everybody is alone on its host, and all of them are in one segment.
    bool flat = false;
    // Levels that do not count. Without the segment every host is one of its own (there is no multicast);
    // without the host there is nothing in it either, and every process is a host of its own.
    LevelSet off;
    Algorithms algorithms;

    bool counts(Level level) const {
        if (level == Level::wan) return true;
        if (flat || off.has(level)) return false;
        return !is_inside_host(level) || !off.has(Level::host);
    }
    bool operator==(const Policy&) const = default;
};

// u8 version (1), u8 flat, u16 levels off, then u8 shape, u8 arity for each level.
inline constexpr std::size_t kPolicyBytes = 4 + 2 * kLevels;
std::array<std::byte, kPolicyBytes> encode(const Policy& policy);
std::optional<Policy> decode_policy(Bytes bytes);

}  // namespace mcastcoll::topology
