// Paths on which the data for a member's open operations is expected.
//
// A waiting rank checks each path with a system call, and most of these calls return nothing. The protocol
// knows the next path, so the reader checks that path first and the other path less often. Unexpected input
// also arrives, for instance a NAK from a peer.
#pragma once

namespace mcastcoll::engine {

struct PollHint {
    bool multicasts = false, messages = false;
    PollHint& operator|=(const PollHint& other) {
        multicasts |= other.multicasts;
        messages |= other.messages;
        return *this;
    }
    bool operator==(const PollHint&) const = default;
};

inline constexpr PollHint kPollAll{true, true};

}  // namespace mcastcoll::engine
