// The messages of one member in one operation: what it sends to whom and when, what it expects from whom, and
// where that goes. Made when the operation is posted; the level then only carries it out. Everybody's
// schedules fit each other: between two members there is at most one message of each number, and both know
// its length.
//
// What has to wait for what:
//   - a send waits until so many of the receives, from the first, are complete: what it passes on has to be
//     there, or it keeps a later round from crowding an earlier one;
//   - or it follows one receive, and passes on what of that has come;
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

struct Message {
    std::uint32_t peer = 0;    // whom it goes to, or comes from
    std::uint32_t number = 0;  // between these two
    std::size_t bytes = 0;
    BlockMap map{};
    std::size_t done = 0;   // bytes sent, or taken
    bool finished = false;  // a message of no bytes has to go and come, too
};

struct Outbound : Message {
    const std::byte* data = nullptr;
    std::size_t after = 0;           // receives that have to be complete
    std::size_t follows = SIZE_MAX;  // the receive that it follows, if any
};

// From this member itself: its own contribution, which no message brings.
struct Inbound : Message {
    std::byte* data = nullptr;
    const std::byte* own = nullptr;
    bool combined = false;
};

struct Schedule {
    enum class Order : std::uint8_t { any, in_turn, in_place };
    Order order = Order::any;
    bool streams = false;  // a send follows a receive
    // What is left to do when all messages are through: so much of the scratch memory goes into the result,
    // or all of its blocks do, of which block i is from rank self - i.
    std::size_t copied_bytes = 0;
    bool unrotates = false;
    std::vector<Outbound> sends;
    std::vector<Inbound> receives;
    std::vector<std::byte> scratch;  // kept for the next operation

    void clear();
    void send(std::uint32_t to, std::size_t number, std::size_t after, const std::byte* data,
              std::size_t bytes, BlockMap map = {});
    // What comes with the last receive, or if there is none the leg's, as it becomes ready.
    void pass_on(std::uint32_t to, std::size_t number, const std::byte* data, std::size_t bytes);
    void receive(std::uint32_t from, std::size_t number, std::byte* data, std::size_t bytes,
                 BlockMap map = {});
    // Scratch memory of at least so many bytes.
    std::byte* room(std::size_t bytes);
    // What this receive gets may let another go on.
    bool ordered(std::size_t receive) const;
    // Bytes of a send that are there by now.
    std::size_t sendable(const Leg& leg, const Outbound& out) const;
    void finish(const Leg& leg, std::uint32_t self, std::uint32_t members) const;
};

// Input and result may be the same memory.
void move_block(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace mcastcoll::levels
