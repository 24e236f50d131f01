// The algorithms that connect clusters.
//
// The algorithms are a table of shapes. A shape returns the parent of each node in the tree that connects the
// clusters (nodes) inside one cluster; node 0 is the root. Each level accepts only the shapes that are
// implemented for the level.
#pragma once

#include "topology/place.h"

namespace mcastcoll::topology {

struct Shape {
    std::string_view name;
    std::size_t (*parent_of)(std::size_t node, std::size_t arity);  // for nodes other than 0
    Level outermost, innermost;
};

// An entry of the table, with an arity for shapes that need it.
struct Algorithm {
    static constexpr std::uint8_t kMaxArity = 64;
    static constexpr std::uint8_t kMaxSegmentArity = 8;

    std::uint8_t number = 0;
    std::uint8_t arity = 0;

    const Shape& shape() const;
    std::size_t parent_of(std::size_t node) const { return shape().parent_of(node, arity); }
    bool allowed_at(Level level) const {
        return level >= shape().outermost && level <= shape().innermost && arity <= max_arity(level);
    }
    static constexpr std::uint8_t max_arity(Level level) {
        return level == Level::segment ? kMaxSegmentArity : kMaxArity;
    }
    // Example: "flat", "4-ary".
    std::string name() const;
    bool operator==(const Algorithm&) const = default;
};

std::optional<Algorithm> algorithm_named(std::string_view name);
// Returns the algorithm with these numbers, or nothing if the shape does not exist or does not have the
// arity.
std::optional<Algorithm> algorithm_of(std::uint8_t shape, std::uint8_t arity);
// The names allowed at this level: "flat, chain, ...".
std::string algorithm_names(Level level);

// The algorithm of each level. Defaults: wan and site flat, segment multicast, host and inner levels shm.
class Algorithms {
  public:
    Algorithms();
    Algorithm at(Level level) const { return at_[index_of(level)]; }
    void set(Level level, Algorithm algorithm) { at_[index_of(level)] = algorithm; }
    bool operator==(const Algorithms&) const = default;

  private:
    std::array<Algorithm, kLevels> at_{};
};

}  // namespace mcastcoll::topology
