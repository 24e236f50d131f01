// Which way what a member's open operations wait for will come.
//
// Why it exists: a rank that waits looks at each way by system calls, most of which bring nothing. The
// protocol knows which way is next, so whoever reads for it can look there first, and elsewhere now and then:
// what is not expected comes too, as a question for what somebody has lost.
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
