// Settings of a gateway, fixed at its start.
#pragma once

#include <cstddef>
#include <optional>

#include "base/types.h"
#include "gateway/session/config.h"
#include "sites/sites.h"
#include "wire/crypto.h"

namespace mcastcoll::gateway {

struct Settings {
    sites::Sites sites;
    std::size_t own = 0;  // index of our site
    sites::Endpoint listen;
    std::optional<wire::Key> key;  // derived from the key file
    std::size_t memory_mib = 512, max_connections = 16384, max_pending = 1024;
    Nanoseconds heartbeat;        // interval of heartbeats on an idle stream
    Nanoseconds silence;          // time without input after which a stream counts as broken
    Nanoseconds session_timeout;  // timeout of a session without streams
    Nanoseconds drain;            // time limit for connections to end at shutdown
    Nanoseconds spin;             // time to poll for work before sleeping
    bool verbose = false;

    const sites::Site& own_site() const { return sites.sites[own]; }
    session::Config session_config(bool connects) const;
    // The local address of outgoing streams, by which peers recognize this gateway.
    std::optional<sites::Endpoint> wan_source() const;
};

}  // namespace mcastcoll::gateway
