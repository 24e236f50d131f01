#include "gateway/shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace mcastcoll::gateway {
namespace {

// Limits the log: a refused host can retry at any rate.
constexpr unsigned kMaxWarnings = 10;
constexpr Nanoseconds kWarningsTime = Nanoseconds::from_ms(10'000);

}  // namespace

// Division of memory: half for the initial windows of all allowed connections, a quarter for the growth of
// windows, a quarter for frames kept until they are acknowledged.
Shared::Shared(const Settings& given) : settings(given), pool{(given.memory_mib << 20) / 4} {
    if (!given.key) return;
    std::vector<std::string> others;
    for (const sites::Site& site : given.sites.sites)
        if (&site != &given.own_site()) others.push_back(site.name);
    tls = std::make_unique<TlsContext>(*given.key, given.own_site().name, others);
}

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

void Shared::log(const std::string& what) const {
    if (settings.verbose) fmt::print(stderr, "mcastcoll-gateway: {}: {}\n", settings.own_site().name, what);
}

void Shared::warn(const std::string& what) {
    if (now() - warnings_from_ >= kWarningsTime) {
        warnings_from_ = now();
        warnings_ = 0;
    }
    if (warnings_ == kMaxWarnings) {
        ++unwarned_;
        return;
    }
    ++warnings_;
    const std::string before = unwarned_ == 0 ? "" : fmt::format("{} more warnings; ", unwarned_);
    unwarned_ = 0;
    fmt::print(stderr, "mcastcoll-gateway: {}: {}{}\n", settings.own_site().name, before, what);
}

}  // namespace mcastcoll::gateway
