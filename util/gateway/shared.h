// What all parts of a gateway use: what it was told, its loop, and what is counted or bounded for all trunks
// together.
#pragma once

#include <optional>
#include <string>

#include "gateway/loop.h"
#include "gateway/tls.h"
#include "relay/sites.h"
#include "trunk/trunk.h"

namespace mcastcoll::gateway {

// So long one has to say who one is.
inline constexpr Nanoseconds kGreetingTime = Nanoseconds::from_ms(5000);

// What a gateway is told when it starts.
struct Settings {
    relay::Sites sites;
    std::size_t own = 0;  // index of our site
    relay::Endpoint listen;
    std::optional<wire::Key> key;  // made of its file
    std::size_t memory_mib = 512, max_connections = 16384, max_newcomers = 1024;
    Nanoseconds heartbeat;  // of a stream that is idle
    Nanoseconds silence;    // of a stream, then it is broken
    Nanoseconds patience;   // with a trunk without streams
    Nanoseconds drain;      // at the end
    Nanoseconds spin;       // before it sleeps
    bool verbose = false;

    const relay::Site& own_site() const { return sites.sites[own]; }
    trunk::Config trunk_config(bool connects) const;
    // Where trunks are connected from, so that the others know us.
    std::optional<relay::Endpoint> wan_source() const;
};

// Of the gateway's own, besides what each trunk counts.
struct GatewayCounters {
    std::uint64_t accepted = 0, garbage = 0, greeting_timeouts = 0, crowded_out = 0, strangers = 0;
    std::uint64_t refused_hellos = 0, foreign_hellos = 0, wrong_keys = 0, forged_records = 0, no_route = 0,
                  over_limit = 0, false_sources = 0, out_of_reach = 0;
    std::uint64_t connections = 0, targets = 0, targets_failed = 0, trunk_down = 0, status_pages = 0;
    std::uint64_t lan_retransmissions = 0, lan_idle_restarts = 0, lan_resets = 0;
};

struct Shared {
    explicit Shared(const Settings& told);

    Nanoseconds now() const { return loop.now(); }
    // Takes no more connections.
    bool full() const { return draining || connections >= settings.max_connections; }
    void say(const std::string& what) const;
    // What an administrator should see even without being asked; of many such lines some, and how many they
    // were.
    void warn(const std::string& what);

    const Settings settings;
    std::unique_ptr<TlsContext> tls;  // null without a key
    Loop loop;
    GatewayCounters counters;
    trunk::WindowPool pool;
    std::size_t connections = 0;  // there are now
    bool draining = false;        // told to end

  private:
    Nanoseconds warnings_from_{0};
    unsigned warnings_ = 0, unwarned_ = 0;
};

}  // namespace mcastcoll::gateway
