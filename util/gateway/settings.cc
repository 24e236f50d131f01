#include "gateway/settings.h"

#include <algorithm>
#include <cstddef>

namespace mcastcoll::gateway {

session::Config Settings::session_config(bool connects) const {
    const std::size_t memory = memory_mib << 20;
    const std::size_t peers = std::max<std::size_t>(sites.sites.size() - 1, 1);
    session::Config config;
    config.even = connects;
    config.first_window = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(memory / 2 / max_connections, session::kMinWindow, 64 * 1024));
    config.send_memory = std::max<std::size_t>(memory / 4 / peers, 1024 * 1024);
    config.max_channels = 2 * max_connections;
    config.cap_bytes_per_second = sites.sessions.cap_mbit * 125'000;
    config.heartbeat = heartbeat;
    config.silence = silence;
    return config;
}

std::optional<sites::Endpoint> Settings::wan_source() const {
    if (own_site().wan.family != listen.family) return std::nullopt;
    sites::Endpoint source = own_site().wan;
    sites::Endpoint any = listen;
    any.address.fill(std::byte{0});
    // Behind an address translator, peers see another address.
    if (!source.same_host(listen) && !listen.same_host(any)) return std::nullopt;
    source.port = 0;
    return source;
}

}  // namespace mcastcoll::gateway
