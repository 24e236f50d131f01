// Paths on which the data for a member's open operations is expected.
//
// A waiting rank checks each path with a system call, and most of these calls return nothing. The protocol
// knows which path is next, so the reader can check that path first and the others less often. Unexpected
// input arrives as well, for instance a NAK from a peer.
#pragma once

namespace mcastcoll::engine {

struct Expectation {
    bool multicasts = false, messages = false;
    Expectation& operator|=(const Expectation& other) {
        multicasts |= other.multicasts;
        messages |= other.messages;
        return *this;
    }
    bool operator==(const Expectation&) const = default;
};

inline constexpr Expectation kAnything{true, true};

}  // namespace mcastcoll::engine
