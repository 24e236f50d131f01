// The messages of one member in one exchange of blocks: what it sends to whom and when, what it expects from
// whom, and where that goes. Made when the operation is posted, by the algorithm's name; the level then only
// carries it out. Everybody's schedules fit each other: between two members there is at most one message of
// each number, and both know its length.
//
// What has to wait for what:
//   - a send waits until so many of the receives, from the first, are complete: what it passes on has to be
//     there, or it keeps a later round from crowding an earlier one;
//   - `in_place`: a receive goes no further than the send beside it has got, whose memory it overwrites;
//   - `in_turn`: the same, and a receive waits for those before it;
//   - `combined`: a receive is combined behind the one before it, piece by piece, so vectors are combined in
//     the order of ranks, whoever is first.
// A round depends on earlier rounds only, and everybody has the same rounds, so no two wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "levels/level.h"

namespace mcastcoll::levels {

//   linear    whoever has something for another sends it, all at once
//   binomial  along a binomial tree, the blocks of a subtree in one message: fewer messages at the root, but
//             each block travels several times
//   pairwise  in rounds, in each of which everybody exchanges with one other; a few rounds overlap
//   bruck     in ceil(log2 n) rounds, in which blocks travel together part of their way (Bruck, Ho, Kipnis,
//             Upfal, Weathersby: Efficient Algorithms for All-to-All Communications in Multiport Message-
//             Passing Systems, IEEE TPDS 8(11), 1997)
//   ring      every block from neighbour to neighbour
enum class ExchangeAlgorithm : std::uint8_t { linear, binomial, pairwise, bruck, ring };

// What carries out an exchange, the same on all members. `bytes` as in a leg. Only for kinds that move
// blocks.
ExchangeAlgorithm choose(Kind kind, std::size_t bytes, std::uint32_t members);

// Where the bytes of a message lie: one behind the other, or in blocks of a buffer.
struct BlockMap {
    enum class Pattern : std::uint8_t {
        whole,   // one behind the other
        circle,  // blocks `first`, `first`+1 ... of `blocks`, and on from 0
        digit    // the blocks whose numbers have the bit `first`
    };
    Pattern pattern = Pattern::whole;
    std::uint32_t first = 0, blocks = 0;
    std::size_t block_bytes = 0;

    struct Place {
        std::size_t offset = 0, run = 0;  // so many bytes from there on lie together
    };
    Place place(std::size_t offset) const;
};

struct Outbound {
    std::uint32_t to = 0;
    std::uint32_t message = 0;  // its number between these two
    std::uint32_t after = 0;    // so many receives, from the first, have to be complete
    const std::byte* data = nullptr;
    BlockMap map;
    std::size_t bytes = 0;
    std::size_t sent = 0;
    bool finished() const { return sent == bytes; }
};

struct Inbound {
    std::uint32_t from = 0;
    std::uint32_t message = 0;
    std::byte* data = nullptr;
    BlockMap map;
    std::size_t bytes = 0;
    const std::byte* own = nullptr;  // this member's own contribution, which no message brings
    std::size_t taken = 0;
    bool finished() const { return taken == bytes; }
};

struct Schedule {
    enum class Order : std::uint8_t { any, in_turn, in_place, combined };
    // What is left to do when all messages are through.
    enum class End : std::uint8_t {
        nothing,
        copy,     // the beginning of the scratch memory into the result
        unrotate  // block i of the scratch memory is from rank self - i
    };
    Order order = Order::any;
    End end = End::nothing;
    std::size_t end_bytes = 0;
    std::vector<Outbound> sends;
    std::vector<Inbound> receives;
    // alltoall by bruck: all blocks; binomial: a subtree's, where there is one; reduce_scatter: the result,
    // if it would overwrite the input. Kept for the next operation.
    std::vector<std::byte> scratch;

    // Makes the schedule of this leg, and moves what stays on this member.
    void begin(const Leg& leg, ExchangeAlgorithm algorithm, std::uint32_t self, std::uint32_t members);
    void finish(const Leg& leg, std::uint32_t self, std::uint32_t members);
};

}  // namespace mcastcoll::levels
