// A channel: one connection as it crosses a trunk, and what a trunk must remember of it.  Both sides number
// the frames they send on it ("order"); the receiver puts them in order again, since they come over several
// streams.  It lives until each side has sent its last frame (reset or close) and got the other's, so that
// its number is never mistaken for another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "trunk/frame.h"
#include "trunk/receive_window.h"

namespace mcastcoll::trunk {

struct Channel {
    struct Held {
        FrameType type = FrameType::data;
        std::vector<std::byte> payload;
    };

    // limit: what the peer takes before credit; window: what this side takes.
    Channel(ChannelId number, bool is_ours, std::uint64_t peer_limit, std::uint64_t first_window)
        : id(number), ours(is_ours), limit(peer_limit), window(first_window) {}

    const ChannelId id;
    const bool ours;     // we opened it
    bool known = false;  // to the host

    // Sending.
    std::uint32_t next_order = 0;
    std::uint64_t sent = 0, limit;  // in cost
    unsigned in_bulk = 0;           // frames in the queue of bulk: smaller ones must not count as urgent
    bool finish_queued = false, last_queued = false;
    bool wants_credit = false, wants_room = false, is_sendable = false;

    // Receiving.
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Held> early;
    std::deque<std::vector<std::byte>> inbox;  // in order, but nobody has taken it yet
    std::size_t taken_of_first = 0;
    ReceiveWindow window;
    bool credit_due = false, finish_received = false, finish_told = false, last_received = false;
    bool discarding = false;  // the owner has dropped it: what still comes is for nobody

    bool over() const { return last_queued && last_received; }
};

}  // namespace mcastcoll::trunk
