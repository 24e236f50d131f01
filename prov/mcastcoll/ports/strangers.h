// Strangers at the private endpoint of an inner provider over TCP. That provider accepts every connection,
// and a message takes a posted receive as soon as its header has come. So a few dozen connections that stop
// in the middle of a message take all receives, and no member's message arrives any more. What is here ends
// the connections of hosts on which no member is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/clock.h"
#include "base/function_ref.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi {

// Ends this process's TCP connections that were accepted at this address, from where `is_stranger`. How many.
// Sockets of others are not touched: each is looked at, and ended, by a descriptor of our own.
std::size_t end_connections(const SocketAddress& own, FunctionRef<bool(const SocketAddress&)> is_stranger);

// When to look for strangers: where members are waited for and no message has come for a while; and often,
// for a while, once strangers have been found.
class StrangerPace {
  public:
    // A message has come, or nothing was waited for until now.
    void heard(Nanoseconds now) { heard_at_ = now; }
    Nanoseconds next_look() const { return std::max(heard_at_ + patience(), not_before_); }
    void has_looked(bool found_strangers, Nanoseconds now) {
        if (found_strangers) alert_until_ = now + kAlert;
        if (now >= alert_until_) alert_until_ = Nanoseconds{};
        const bool heard = heard_at_ > looked_at_;
        pause_ = is_alert() || heard ? patience() : std::min(Nanoseconds{2 * pause_.value}, kLongest);
        looked_at_ = now;
        not_before_ = now + pause_;
    }
    // Strangers were found not long ago: they may come again, and are not to take all receives first.
    bool is_alert() const { return alert_until_ > Nanoseconds{}; }

  private:
    static constexpr Nanoseconds kCalm = Nanoseconds::from_ms(1000), kOften = Nanoseconds::from_ms(10),
                                 kLongest = Nanoseconds::from_ms(32'000),
                                 kAlert = Nanoseconds::from_ms(60'000);
    Nanoseconds patience() const { return is_alert() ? kOften : kCalm; }

    Nanoseconds heard_at_{}, looked_at_{}, not_before_{}, alert_until_{}, pause_ = kCalm;
};

}  // namespace mcastcoll::ofi
