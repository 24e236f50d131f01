// Which messages an exchange of blocks is made of, by name: a table of algorithms, and the choice by the size
// of a block and the number of members. All members must come to the same choice, so their policies must be
// the same.
//
//   linear    whoever has something for another sends it, all at once
//   binomial  along a binomial tree, the blocks of a subtree in one message: fewer messages at the root, but
//             each block travels several times
//   pairwise  in rounds, in each of which everybody exchanges with one other; a few rounds overlap
//   bruck     in ceil(log2 n) rounds, in which blocks travel together part of their way (Bruck, Ho, Kipnis,
//             Upfal, Weathersby: Efficient Algorithms for All-to-All Communications in Multiport Message-
//             Passing Systems, IEEE TPDS 8(11), 1997)
//   ring      every block from neighbour to neighbour
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "levels/level.h"

namespace mcastcoll::levels {

enum class ExchangeAlgorithm : std::uint8_t { linear, binomial, pairwise, bruck, ring };

std::string_view name_of(ExchangeAlgorithm algorithm);
// Nothing when there is none of this name, or not for this kind.
std::optional<ExchangeAlgorithm> exchange_algorithm_named(Kind kind, std::string_view name);
// "linear, binomial": those that there are for this kind.
std::string exchange_algorithm_names(Kind kind);

struct ExchangePolicy {
    // Set: always this one. By kind, from allgather on.
    std::array<std::optional<ExchangeAlgorithm>, 5> named{};
    // Otherwise, for blocks up to so many bytes: messages that travel together, and more than once.
    std::size_t most_binomial_bytes = 1024;
    std::uint32_t least_binomial_members = 16;
    std::size_t most_bruck_alltoall_bytes = 256;
    std::uint32_t least_bruck_alltoall_members = 8;
    std::size_t most_bruck_allgather_bytes = 16384;

    static constexpr std::size_t index(Kind kind) {
        return static_cast<std::size_t>(kind) - static_cast<std::size_t>(Kind::allgather);
    }
};

// `bytes` as in a leg. Only for kinds that move blocks.
ExchangeAlgorithm choose(const ExchangePolicy& policy, Kind kind, std::size_t bytes, std::uint32_t members);

}  // namespace mcastcoll::levels
