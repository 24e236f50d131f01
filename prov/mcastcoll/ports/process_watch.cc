#include "ports/process_watch.h"

#include <array>
#include <cerrno>

#include "provider/log.h"

namespace mcastcoll::ports {
namespace {

constexpr Nanoseconds kWatchInterval = Nanoseconds::from_ms(10);

}  // namespace

Result<void> ProcessWatch::open(const transport::PeerWatchOptions& options) {
    auto watch = transport::PeerWatch::open(options);
    if (!watch) return watch.error();
    watch_ = std::move(watch).value();
    scope_ = options.local.scope();
    return {};
}

wire::ByteString ProcessWatch::own_point() const {
    const auto point = transport::encode_watch_point(watch_->local_point());
    return {point.begin(), point.end()};
}

void ProcessWatch::watch(transport::PeerWatch::Id peer, const wire::ByteString& watch_point,
                         Nanoseconds now) {
    auto point = transport::decode_watch_point(watch_point);
    if (!point) return;
    point.value().listener = point.value().listener.seen_from(scope_);
    const auto watching = watch_->watch(peer, point.value(), now);
    if (!watching && watching.error().code != EEXIST)
        provider::log_line(
            provider::Level::info,
            "cannot watch the process of peer {}: {}; its death may show only when a message to "
            "it fails",
            peer, watching.error().message);
}

void ProcessWatch::look_at(transport::PeerWatch::Id peer, const wire::ByteString& watch_point,
                           Nanoseconds now) {
    ++suspicions_;
    watch(peer, watch_point, now);
    watch_->look(peer, now);
}

void ProcessWatch::check(Nanoseconds now, Lost lost) {
    // The watch is polled even without watched peers, because other processes watch this process: their
    // connections must be accepted, and closed connections removed.
    if (now - checked_at_ < kWatchInterval) return;
    checked_at_ = now;
    std::array<transport::PeerWatch::Death, 16> dead{};
    const std::size_t count = watch_->poll(now, dead);
    for (std::size_t i = 0; i < count; ++i) {
        // Not a warning: the peer may have finished normally. Groups that still need the peer log a warning
        // with the reason.
        provider::log_line(provider::Level::info, "peer {} is lost: {}", dead[i].id, dead[i].reason);
        lost(dead[i].id, dead[i].error, dead[i].reason);
    }
}

}  // namespace mcastcoll::ports
