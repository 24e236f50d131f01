// Foreign connections to the private endpoint of an inner provider over TCP. The provider accepts every
// connection, and a message takes a posted receive as soon as its header has arrived. A few dozen connections
// stalled in the middle of a message therefore occupy all receives, and no member's message arrives any more.
// end_connections() closes the connections from hosts without members.
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>

#include "base/function_ref.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi {

// Shuts down the process's TCP connections accepted at `own` whose peer `is_foreign` selects. Returns their
// number. Each socket is examined through a duplicate of its descriptor, so a descriptor closed and reused by
// another thread in the meantime is never shut down.
std::size_t end_connections(const SocketAddress& own, FunctionRef<bool(const SocketAddress&)> is_foreign);

// Decides when to look for foreign connections: one second after the last message while the process waits for
// members, then at growing intervals. For a minute after a find: every 10 ms.
class ForeignConnectionPace {
  public:
    // Called when a message arrives or the process begins to wait.
    void received(Nanoseconds now) { received_at_ = now; }
    Nanoseconds next_look() const { return std::max(received_at_ + interval(), not_before_); }
    void has_looked(bool found_foreign, Nanoseconds now) {
        if (found_foreign) alert_until_ = now + kAlert;
        if (now >= alert_until_) alert_until_ = Nanoseconds{};
        const bool received = received_at_ > looked_at_;
        pause_ = is_alert() || received ? interval() : std::min(Nanoseconds{2 * pause_.value}, kLongest);
        looked_at_ = now;
        not_before_ = now + pause_;
    }
    // True for a minute after foreign connections were found, because the same hosts may connect again.
    bool is_alert() const { return alert_until_ > Nanoseconds{}; }

  private:
    static constexpr Nanoseconds kCalm = Nanoseconds::from_ms(1000), kOften = Nanoseconds::from_ms(10),
                                 kLongest = Nanoseconds::from_ms(32'000),
                                 kAlert = Nanoseconds::from_ms(60'000);
    Nanoseconds interval() const { return is_alert() ? kOften : kCalm; }

    Nanoseconds received_at_{}, looked_at_{}, not_before_{}, alert_until_{}, pause_ = kCalm;
};

}  // namespace mcastcoll::ofi
