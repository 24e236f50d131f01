// The messages of one member in one operation: receivers, senders, buffers and dependencies. The schedule is
// made when the operation is posted, and the level only executes it. The members' schedules match: between
// two members there is at most one message of each number, of known length.
//
// Dependencies:
//   - a send waits until a number of leading receives is complete, because it forwards their data, or to keep
//     a later round from overtaking an earlier one;
//   - or it follows one receive, and forwards that receive's data as they arrive;
//   - `in_place`: a receive proceeds no further than the send beside it, whose memory it overwrites;
//   - `in_turn`: the same, and a receive waits for the receives before it;
//   - `combined`: a receive is combined after the one before it, piece by piece, so vectors are combined in
//     the order of ranks, whatever the order of arrival.
// A round depends on earlier rounds only, and the rounds are the same on all members, so there is no cyclic
// wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "levels/level.h"

namespace mcastcoll::levels {

// Where the bytes of a message are: contiguous, or in blocks of a buffer.
struct BlockMap {
    enum class Pattern : std::uint8_t {
        whole,   // contiguous
        circle,  // the blocks from `first` on; block 0 follows the last of `blocks`
        digit    // the blocks with the bit `first` in their numbers
    };
    Pattern pattern = Pattern::whole;
    std::uint32_t first = 0, blocks = 0;
    std::size_t block_bytes = 0;

    struct Place {
        std::size_t offset = 0, run = 0;  // this many contiguous bytes
    };
    Place place(std::size_t offset) const;
};

struct Message {
    std::uint32_t peer = 0;    // receiver or sender
    std::uint32_t number = 0;  // between these two members
    std::size_t bytes = 0;
    BlockMap map{};
    std::size_t done = 0;   // bytes sent, or taken
    bool finished = false;  // needed because an empty message is sent and received, too
};

struct Outbound : Message {
    const std::byte* data = nullptr;
    std::size_t after = 0;           // number of leading receives that must be complete
    std::size_t follows = SIZE_MAX;  // the receive to follow, if any
};

// If the sender is this member, the data is this member's own contribution and no message is sent.
struct Inbound : Message {
    std::byte* data = nullptr;
    const std::byte* own = nullptr;
    bool combined = false;
};

struct Schedule {
    enum class Order : std::uint8_t { any, in_turn, in_place };
    Order order = Order::any;
    bool streams = false;  // a send follows a receive
    // Copies from the scratch memory into the result at the end: the first copied_bytes, or, with
    // `unrotates`, every block; block i of the scratch memory is the block of rank self - i.
    std::size_t copied_bytes = 0;
    bool unrotates = false;
    std::vector<Outbound> sends;
    std::vector<Inbound> receives;
    std::vector<std::byte> scratch;  // kept for the next operation

    void clear();
    void send(std::uint32_t to, std::size_t number, std::size_t after, const std::byte* data,
              std::size_t bytes, BlockMap map = {});
    // Forwards the data of the last receive as they arrive; without a receive, the data of the
    // `LevelOperation` as they become ready.
    void forward(std::uint32_t to, std::size_t number, const std::byte* data, std::size_t bytes);
    void receive(std::uint32_t from, std::size_t number, std::byte* data, std::size_t bytes,
                 BlockMap map = {});
    // Returns scratch memory of at least this size.
    std::byte* room(std::size_t bytes);
    // Whether data of this receive may unblock another receive.
    bool ordered(std::size_t receive) const;
    // Number of bytes of a send that are available.
    std::size_t sendable(const LevelOperation& operation, const Outbound& out) const;
    void finish(const LevelOperation& operation, std::uint32_t self, std::uint32_t members) const;
};

// `to` and `from` may overlap, or be the same.
void move_block(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace mcastcoll::levels
