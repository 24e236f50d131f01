// What an engine is made with. Everything a group agreed on at its join, and this member's own limits.
#pragma once

#include <cstdint>

#include "wire/types.h"

namespace mcastcoll::engine {

// Who starts a repair. push: every member hands small messages on to whom it supplies, a repair delay after
// it has them (Hoefler's second stage), and asks for large ones from the start. pull: nothing moves until
// somebody lacks something.
enum class Repair : std::uint8_t { push, pull };

struct GroupConfig {
    Rank self{};
    std::uint32_t members = 1;
    GroupKey key{};
    Epoch epoch{};

    // Equal on all members.
    std::uint32_t fragment_bytes = 1424;  // payload of a multicast datagram
    std::uint32_t stash_bytes = 8192;     // messages up to this are kept for repair until everybody has them
    std::uint32_t operation_slots = 128;  // operations between the slowest and the fastest member
    std::uint32_t checkpoint_every = 32;  // operations between two agreements on what everybody has finished
    std::uint32_t window = 256;           // fragments a root may be ahead of the slowest member that hears it
    std::uint32_t initial_window =
        48;  // fragments sent before it is known that everybody has posted the operation
    std::uint32_t tree_arity = 4;  // children per member in the trees of gathers, reports and small repairs
    std::uint32_t large_tree_arity =
        1;  // the same for large messages to the deaf: a chain halves nobody's bandwidth
    std::uint32_t early_buffers =
        4;  // large operations whose first fragments are kept before they are posted
    Repair repair = Repair::pull;

    // This member's own.
    std::uint32_t message_bytes = 65536;      // longest message, header included
    std::uint32_t pending_operations = 1024;  // submitted but not yet started
    bool multicast = true;                    // this member has a multicast socket
    std::uint32_t probes = 4;                 // datagrams each member multicasts at the join
    Nanoseconds probe_interval = Nanoseconds::from_ms(1);
    Nanoseconds probe_settle = Nanoseconds::from_ms(50);  // longest wait for the last probe
    Nanoseconds initial_rtt = Nanoseconds::from_us(200);
    Nanoseconds watch_delay =
        Nanoseconds::from_ms(100);  // waiting longer asks whether the other process is alive

    bool large(std::uint64_t bytes) const { return bytes > stash_bytes; }
    std::uint32_t fragments(std::uint64_t bytes) const {
        return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + fragment_bytes - 1) / fragment_bytes);
    }
};

}  // namespace mcastcoll::engine
