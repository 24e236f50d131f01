#include "gateway/stream_room.h"

#include <algorithm>

namespace mcastcoll::gateway {
namespace {

constexpr int kMaxSendBuffer = 64 << 20;
// What waits in the kernel beyond what is under way: enough not to run dry, little enough for small frames to
// overtake, and for the slowest stream not to have what another had sent already.
constexpr std::uint64_t kUnsentTime_ms = 10, kLeastUnsent = 16 * 1024, kMostUnsent = 128 * 1024;
constexpr Nanoseconds kLookEach = Nanoseconds::from_ms(1);

}  // namespace

void StreamRoom::look(int socket, Nanoseconds now) {
    if (now - looked_ < kLookEach) return;
    looked_ = now;
    info_ = info_of(socket);
    if (!info_) return;
    const std::int64_t segment = info_->tcpi_snd_mss;
    window_ = segment * info_->tcpi_snd_cwnd;
    queued_ = segment * info_->tcpi_unacked + info_->tcpi_notsent_bytes;
    if (info_->tcpi_rtt > 0) rate_ = static_cast<std::uint64_t>(window_) * 1'000'000 / info_->tcpi_rtt;
}

std::size_t StreamRoom::most_unsent() const {
    return std::clamp(rate_ * kUnsentTime_ms / 1000, kLeastUnsent, kMostUnsent);
}

void StreamRoom::fit_buffers(int socket) const {
    if (rate_ > 0) limit_unsent(socket, static_cast<int>(most_unsent()));
    if (!info_ || info_->tcpi_delivery_rate_app_limited != 0 || info_->tcpi_min_rtt == UINT32_MAX) return;
    // What is under way in a round trip must have room twice: until it is acknowledged, and while the next is
    // made.
    const std::uint64_t product = info_->tcpi_delivery_rate * info_->tcpi_rtt / 1'000'000;
    const int wanted = static_cast<int>(std::min<std::uint64_t>(product * 3, kMaxSendBuffer));
    if (wanted > send_buffer_of(socket)) set_send_buffer(socket, wanted);
}

}  // namespace mcastcoll::gateway
