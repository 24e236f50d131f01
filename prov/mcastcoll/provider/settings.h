// The checked values of the FI_MCASTCOLL_* variables, and of the keys of FI_MCASTCOLL_EXPERIMENT. The table
// in params.cc has their names, defaults and help texts.
#pragma once

#include "engine/address_choice.h"
#include "group/welcome.h"
#include "topology/override.h"
#include "transport/interceptor.h"

namespace mcastcoll::provider {

using group::GroupSettings;
using group::kMaxChannels;
using group::kMaxRootDelayUs;

// The transport of multicasts.
enum class Carrier {
    automatic,  // verbs if the inner provider is verbs as well
    udp,
    verbs,  // if there is a device
};

struct Settings {
    std::string inner;  // empty: automatic choice
    bool multicast = true;
    Carrier transport = Carrier::automatic;
    std::size_t receives = 1024;  // posted receives of a UD queue pair
    std::string iface;            // empty: the interface with the inner endpoint's address
    int ip = 0;                   // 4, 6, or 0: as the inner endpoint
    int ttl = 1;
    int port = 0;
    std::optional<engine::AddressScheme> address_scheme;  // empty: the cheapest
    std::size_t memberships = 256;                        // multicast addresses joined at once
    std::size_t rcvbuf = 4194304;
    std::size_t sndbuf = 0;
    GroupSettings group;
    std::optional<wire::Security> security;  // empty: depends on whether there is a secret
    std::shared_ptr<const wire::Key> key;    // from the key file; null: none
    std::optional<std::string> munge;        // munged's socket, or "", if MUNGE carries secrets
    unsigned window = 0;                     // fragments; 0: from the receive buffer
    int join_timeout_ms = 120'000;
    int host_timeout_ms = 120'000;
    int peer_timeout_ms = 5000;  // for reliable multicast messages
    int linger_ms = 2000;
    int stall_timeout_s = 0;  // 0: never
    topology::Override topology;
    bool has_gateways = false;           // gateways connect the sites
    std::vector<levels::Row> selection;  // the user's rows; the built-in rows follow
    transport::InterceptorSpec fault;
    std::string stats;  // prefix of the counters' files; empty: none
};

// Registers the variables with libfabric, for `fi_info -e`.
void define_params();
// Reads the current values of the variables. An error names the variable and the permitted values.
Result<Settings> read_settings();
// For use after read_settings() has succeeded once: a bad value yields the defaults.
Settings provider_settings();

}  // namespace mcastcoll::provider
