// State shared by all parts of a gateway: settings, the loop, and counters and limits for all sessions
// together.
#pragma once

#include <optional>
#include <string>

#include "gateway/loop.h"
#include "gateway/session/session.h"
#include "gateway/tls.h"
#include "sites/sites.h"

namespace mcastcoll::gateway {

// Time limit for a new connection to identify itself.
inline constexpr Nanoseconds kHelloTime = Nanoseconds::from_ms(5000);

// Settings of a gateway, fixed at its start.
struct Settings {
    sites::Sites sites;
    std::size_t own = 0;  // index of our site
    sites::Endpoint listen;
    std::optional<wire::Key> key;  // derived from the key file
    std::size_t memory_mib = 512, max_connections = 16384, max_pending = 1024;
    Nanoseconds heartbeat;        // interval of heartbeats on an idle stream
    Nanoseconds silence;          // after which a stream counts as broken
    Nanoseconds session_timeout;  // timeout of a session without streams
    Nanoseconds drain;            // time limit for connections to end at shutdown
    Nanoseconds spin;             // time to poll for work before sleeping
    bool verbose = false;

    const sites::Site& own_site() const { return sites.sites[own]; }
    session::Config session_config(bool connects) const;
    // Local address for outgoing sessions, by which peers recognize this gateway.
    std::optional<sites::Endpoint> wan_source() const;
};

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
    // Whether new connections are refused.
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
