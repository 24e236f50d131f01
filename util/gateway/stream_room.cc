#include "gateway/stream_room.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

constexpr int kMaxSendBuffer = 64 << 20;
// The kernel gets unsent bytes for this time, at least kMinUnsent, so that the stream does not run dry.
constexpr std::uint64_t kUnsentTime_ms = 10, kMinUnsent = 16 * 1024;
constexpr Nanoseconds kLookEvery = Nanoseconds::from_ms(1);

}  // namespace

void StreamRoom::look(int socket, Nanoseconds now) {
    if (now - looked_ < kLookEvery) return;
    looked_ = now;
    info_ = option_of<tcp_info>(socket, IPPROTO_TCP, TCP_INFO);
    if (!info_) return;
    const std::int64_t segment = info_->tcpi_snd_mss;
    window_ = segment * info_->tcpi_snd_cwnd;
    queued_ = segment * info_->tcpi_unacked + info_->tcpi_notsent_bytes;
    if (info_->tcpi_rtt > 0) rate_ = static_cast<std::uint64_t>(window_) * 1'000'000 / info_->tcpi_rtt;
}

std::size_t StreamRoom::max_unsent() const {
    return std::clamp(rate_ * kUnsentTime_ms / 1000, kMinUnsent, kMaxUnsent);
}

void StreamRoom::fit_buffers(int socket) const {
    if (rate_ > 0) set_option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(max_unsent()));
    if (!info_ || info_->tcpi_delivery_rate_app_limited != 0 || info_->tcpi_min_rtt == UINT32_MAX) return;
    // The buffer must have room for the unacknowledged data of a round trip and for as much new data; the
    // third part is a reserve.
    const std::uint64_t product = info_->tcpi_delivery_rate * info_->tcpi_rtt / 1'000'000;
    const int wanted = static_cast<int>(std::min<std::uint64_t>(product * 3, kMaxSendBuffer));
    if (wanted > option_of<int>(socket, SOL_SOCKET, SO_SNDBUF))
        set_option(socket, SOL_SOCKET, SO_SNDBUF, wanted);
}

}  // namespace mcastcoll::gateway
