// How the clusters inside a cluster are connected, by name: a table of shapes behind one type. A shape says
// who the parent of the i-th of n nodes is, node 0 being the root. Each level takes the shapes that it
// carries out, and no others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/levels.h"

namespace mcastcoll::topology {

struct Shape {
    std::string_view name;
    std::size_t (*parent_of)(std::size_t node, std::size_t arity);  // of a node other than 0
    Level outermost, innermost;
    std::string_view what;
};

// One entry of the table, with the arity of those that have one.
class Algorithm {
  public:
    static constexpr std::uint8_t kMostArity = 64;
    static constexpr std::uint8_t kMostSegmentArity = 8;

    constexpr Algorithm() = default;
    constexpr explicit Algorithm(std::uint8_t shape, std::uint8_t arity = 0) : shape_(shape), arity_(arity) {}
    const Shape& shape() const;
    std::uint8_t number() const { return shape_; }
    std::uint8_t arity() const { return arity_; }
    std::size_t parent_of(std::size_t node) const { return shape().parent_of(node, arity_); }
    bool allowed_at(Level level) const {
        return level >= shape().outermost && level <= shape().innermost && arity_ <= most_arity(level);
    }
    static constexpr std::uint8_t most_arity(Level level) {
        return level == Level::segment ? kMostSegmentArity : kMostArity;
    }
    // "flat", "4-ary"
    std::string name() const;
    bool operator==(const Algorithm&) const = default;

  private:
    std::uint8_t shape_ = 0;
    std::uint8_t arity_ = 0;
};

std::optional<Algorithm> algorithm_named(std::string_view name);
// From a message: nothing when there is no such shape or arity.
std::optional<Algorithm> algorithm_of(std::uint8_t shape, std::uint8_t arity);
// "flat, chain, ..." that may be used at this level.
std::string algorithm_names(Level level);

// The algorithm of each level.
class Algorithms {
  public:
    // wan and site: flat; segment: multicast; the host and what is in it: shm.
    Algorithms();
    Algorithm at(Level level) const { return at_[index_of(level)]; }
    void set(Level level, Algorithm algorithm) { at_[index_of(level)] = algorithm; }
    bool operator==(const Algorithms&) const = default;

  private:
    std::array<Algorithm, kLevels> at_{};
};

}  // namespace mcastcoll::topology
