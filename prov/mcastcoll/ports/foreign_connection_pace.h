// Decides when to look for foreign connections (foreign_connections.h): one second after the last message
// while the process waits for members, then at intervals that double up to 32 s, or every 10 ms during the
// minute after foreign connections were found.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace mcastcoll::ports {

class ForeignConnectionPace {
  public:
    // Must be called when a message arrives and when the process begins to wait.
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

}  // namespace mcastcoll::ports
