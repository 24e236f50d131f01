#include "gateway/shared.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace mcastcoll::gateway {
namespace {

// Limits the log: a refused host can retry at any rate.
constexpr unsigned kMaxWarnings = 10;
constexpr Nanoseconds kWarningsTime = Nanoseconds::from_ms(10'000);

}  // namespace

// Divides the memory: half for the initial windows of all allowed connections, a quarter (`pool`) for the
// growth of windows, a quarter for frames kept until they are acknowledged.
Shared::Shared(const Settings& given) : settings(given), pool{(given.memory_mib << 20) / 4} {
    if (!given.key) return;
    std::vector<std::string> others;
    for (const sites::Site& site : given.sites.sites)
        if (&site != &given.own_site()) others.push_back(site.name);
    tls = std::make_unique<TlsContext>(*given.key, given.own_site().name, others);
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
    const std::string before = unwarned_ == 0 ? "" : fmt::format("{} warnings were suppressed; ", unwarned_);
    unwarned_ = 0;
    fmt::print(stderr, "mcastcoll-gateway: {}: {}{}\n", settings.own_site().name, before, what);
}

}  // namespace mcastcoll::gateway
