// What the user set through FI_MCASTCOLL_* variables, checked. The variables themselves, their defaults and
// their help are one table in params.cc.
#pragma once

#include "engine/ranges.h"
#include "group/welcome.h"
#include "topology/override.h"
#include "transport/interceptor.h"

namespace mcastcoll::ofi {

using group::GroupSettings;
using group::kMostChannels;
using group::kMostRootDelayUs;

// What carries multicasts.
enum class Carrier {
    automatic,  // verbs where the inner provider is verbs, too
    udp,
    verbs,  // where there is a device
};

struct Settings {
    std::string inner;  // empty: choose
    bool multicast = true;
    Carrier transport = Carrier::automatic;
    std::size_t receives = 1024;  // that verbs has waiting
    std::string iface;            // empty: the one with the inner endpoint's address
    int ip = 0;                   // 4, 6, or 0: as the inner endpoint
    int ttl = 1;
    int port = 0;
    std::optional<engine::Plan> plan;  // none: by cost
    std::size_t memberships = 256;     // multicast addresses joined at once
    std::size_t rcvbuf = 4194304;
    std::size_t sndbuf = 0;
    GroupSettings group;
    std::optional<wire::Security> security;  // none: by whether there is a secret
    std::shared_ptr<const wire::Key> key;    // of the file; null: none
    std::optional<std::string> munge;        // its socket, or "", where it carries secrets
    unsigned window = 0;                     // fragments; 0: from the receive buffer
    int join_timeout_ms = 120'000;
    int host_timeout_ms = 120'000;
    int peer_timeout_ms = 5000;  // of reliable messages
    int linger_ms = 2000;
    int stall_timeout_s = 0;  // 0: never
    topology::Override topology;
    bool has_gateways = false;           // between sites
    std::vector<levels::Row> selection;  // the user's; the built-in ones come after them
    InterceptorSpec fault;
    std::string stats;  // empty: none
};

// Tells libfabric about the variables, which is what `fi_info -e` lists.
void define_params();
// Reads the variables as they are now. The error names the variable and what it may be.
Result<Settings> read_settings();
// The same for those who run only after read_settings() has been fine: a bad value gives the defaults.
Settings provider_settings();

}  // namespace mcastcoll::ofi
