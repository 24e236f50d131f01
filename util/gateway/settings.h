// What a gateway is told when it starts, and what it counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "gateway/secure.h"
#include "relay/sites.h"

namespace mcastcoll::gateway {

struct Settings {
    relay::Sites sites;
    std::size_t own = 0;  // index of our site
    relay::Endpoint listen;
    Key key;
    std::size_t memory = 512U << 20;
    std::size_t max_connections = 16384, max_newcomers = 1024;
    Nanoseconds greeting = Nanoseconds::from_ms(5000);  // to say who one is
    Nanoseconds connect = Nanoseconds::from_ms(10000);  // to a process
    Nanoseconds heartbeat = Nanoseconds::from_ms(100);
    Nanoseconds silence = Nanoseconds::from_ms(5000);    // of a stream, then it is broken
    Nanoseconds patience = Nanoseconds::from_ms(30000);  // with a trunk without streams
    Nanoseconds drain = Nanoseconds::from_ms(5000);      // at the end
    Nanoseconds spin{0};
    bool verbose = false;

    const relay::Site& own_site() const { return sites.sites[own]; }
};

// Of the gateway's own, besides what each trunk counts.
struct GatewayCounters {
    std::uint64_t accepted = 0, garbage = 0, greeting_timeouts = 0, crowded_out = 0, strangers = 0;
    std::uint64_t refused_hellos = 0, foreign_hellos = 0, wrong_keys = 0, forged_records = 0, no_route = 0,
                  over_limit = 0;
    std::uint64_t connections = 0, targets = 0, targets_failed = 0, trunk_down = 0, status_pages = 0;
    std::uint64_t lan_retransmissions = 0, lan_idle_restarts = 0, lan_resets = 0;
};

}  // namespace mcastcoll::gateway
