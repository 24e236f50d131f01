// State shared by all parts of a gateway: settings, the loop, and counters and limits for all sessions
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gateway/loop.h"
#include "gateway/session/receive_window.h"
#include "gateway/session/session.h"
#include "gateway/settings.h"
#include "gateway/tls_context.h"

namespace mcastcoll::gateway {

// Time limit for a new connection to identify itself.
inline constexpr Nanoseconds kHelloTime = Nanoseconds::from_ms(5000);

// Counters of the gateway, in addition to the counters of each session.
struct GatewayCounters {
    std::uint64_t accepted = 0, garbage = 0, hello_timeouts = 0, evicted = 0, foreign_connections = 0;
    std::uint64_t refused_hellos = 0, foreign_hellos = 0, wrong_keys = 0, forged_records = 0, no_route = 0,
                  over_limit = 0, false_sources = 0, out_of_reach = 0;
    std::uint64_t connections = 0, targets = 0, targets_failed = 0, session_down = 0, status_pages = 0;
    std::uint64_t lan_retransmissions = 0, lan_idle_restarts = 0, lan_resets = 0;
};

struct Shared {
    explicit Shared(const Settings& given);

    Nanoseconds now() const { return loop.now(); }
    // Whether the gateway refuses new connections.
    bool full() const { return draining || connections >= settings.max_connections; }
    void log(const std::string& what) const;
    // Prints a line even without --verbose; the rate is limited, and a line reports how many were suppressed.
    void warn(const std::string& what);

    const Settings settings;
    std::unique_ptr<TlsContext> tls;  // null without a key
    Loop loop;
    GatewayCounters counters;
    session::WindowPool pool;
    std::size_t connections = 0;  // current number
    bool draining = false;        // shutdown requested

  private:
    Nanoseconds warnings_from_{0};
    unsigned warnings_ = 0, unwarned_ = 0;
};

}  // namespace mcastcoll::gateway
