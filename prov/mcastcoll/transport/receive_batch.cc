#include "transport/receive_batch.h"

#include <errno.h>

#include <algorithm>

#include "base/cache.h"
#include "wire/packet.h"

namespace mcastcoll::transport {
namespace {

// The size of a buffer for a run: any UDP message fits. The stride is not a power of two, so that the
// beginnings of the buffers are in different cache sets.
constexpr std::size_t kRunBuffer = 65536;
constexpr std::size_t kRunBufferStride = kRunBuffer + 192;

}  // namespace

ReceiveBatch::ReceiveBatch(std::size_t max_payload, bool runs)
    : max_payload_(max_payload), runs_(runs), at_once_(runs ? kRunsAtOnce : kBatch) {
    const std::size_t length = runs ? kRunBuffer : max_payload;
    const std::size_t stride = runs ? kRunBufferStride : max_payload;
    buffers_ = std::make_unique_for_overwrite<std::byte[]>(at_once_ * stride);
    for (std::size_t i = 0; i < at_once_; ++i) {
        pieces_[i] = {buffers_.get() + i * stride, length};
        msghdr& in = messages_[i].msg_hdr;
        in.msg_name = sources_[i].data();
        in.msg_namelen = SocketAddress::capacity();
        in.msg_iov = &pieces_[i];
        in.msg_iovlen = 1;
        if (!runs) continue;
        in.msg_control = controls_[i].bytes.data();
        in.msg_controllen = controls_[i].bytes.size();
    }
}

std::size_t ReceiveBatch::take(int descriptor, DeliverDatagram deliver, MulticastCounters& counters) {
    std::size_t taken = 0;
    for (std::size_t got = at_once_; got == at_once_ && taken < kBatch; taken += got) {
        got = receive(descriptor, counters);
        for (std::size_t i = 0; i < got; ++i) deliver_message(i, deliver, counters);
    }
    return taken;
}

std::size_t ReceiveBatch::receive(int descriptor, MulticastCounters& counters) {
    int got;
    do {
        got =
            ::recvmmsg(descriptor, messages_.data(), static_cast<unsigned>(at_once_), MSG_DONTWAIT, nullptr);
    } while (got < 0 && errno == EINTR);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EAGAIN && errno != EWOULDBLOCK) ++counters.receive_errors;
    return 0;
}

void ReceiveBatch::deliver_message(std::size_t slot, DeliverDatagram deliver, MulticastCounters& counters) {
    mmsghdr& message = messages_[slot];
    const std::size_t length = message.msg_len;
    const std::size_t unit = runs_ ? run_unit(message.msg_hdr, length) : length;
    message.msg_hdr.msg_namelen = SocketAddress::capacity();
    if (runs_) message.msg_hdr.msg_controllen = controls_[slot].bytes.size();
    counters.bytes_received += length;
    if (length > unit) ++counters.runs_received;
    auto* const begin = static_cast<std::byte*>(pieces_[slot].iov_base);
    const bool cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    std::size_t at = 0;
    // At least one iteration, because a datagram may be empty.
    do {
        const std::size_t size = std::min(unit, length - at);
        ++counters.datagrams_received;
        // Prefetches the header of the next datagram, which is read once and first: the hardware prefetcher
        // is too late.
        prefetch(begin + at + size, wire::kHeaderBytes);
        if (cut || size > max_payload_)
            ++counters.truncated;
        else
            deliver(MutableBytes(begin + at, size), sources_[slot]);
        at += size;
    } while (at < length);
}

}  // namespace mcastcoll::transport
