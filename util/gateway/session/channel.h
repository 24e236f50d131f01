// The state of a channel: a connection carried by a gateway session (`Session`). The sender numbers the
// frames of a channel ("order"), and the receiver restores the order, because frames arrive over several
// streams. A channel exists until each side has sent its last frame (reset or close) and received the peer's,
// so that a number is never reused too early. Amounts of data are in cost: payload plus header (frame.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "gateway/session/frame.h"
#include "gateway/session/receive_window.h"

namespace mcastcoll::gateway::session {

struct Channel {
    struct Held {
        FrameType type = FrameType::data;
        std::vector<std::byte> payload;
    };

    // limit: cost accepted by the peer before any credit; window: cost accepted by this side.
    Channel(ChannelId number, bool is_opened_here, std::uint64_t peer_limit, std::uint64_t first_window,
            WindowPool& pool)
        : id(number), opened_here(is_opened_here), limit(peer_limit), window(first_window, pool) {}

    const ChannelId id;
    const bool opened_here;  // opened by this side
    bool known = false;      // the host was informed of the channel

    // Sending.
    std::uint32_t next_order = 0;
    std::uint64_t sent = 0, limit;  // in cost
    unsigned in_bulk = 0;           // frames in the bulk queue: small frames of this channel wait behind them
    bool finish_queued = false, last_queued = false;
    bool wants_credit = false, wants_room = false, is_sendable = false;

    // Receiving.
    std::uint64_t expected = 0;
    std::map<std::uint64_t, Held> early;
    std::deque<std::vector<std::byte>> inbox;  // in order, not yet taken by the owner
    std::size_t taken_of_first = 0;
    ReceiveWindow window;
    bool credit_due = false, finish_received = false, finish_reported = false, last_received = false;
    bool discarding = false;  // dropped by the owner: further data is discarded

    bool over() const { return last_queued && last_received; }
};

}  // namespace mcastcoll::gateway::session
