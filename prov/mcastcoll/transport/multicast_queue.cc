#include "transport/multicast_queue.h"

#include <algorithm>
#include <cstring>

namespace mcastcoll::transport {

// Sorts the datagrams by address before they are sent, so that runs of datagrams stay together, and so that
// the accepted datagrams come first in the queue.
int MulticastQueue::flush(MulticastTransport& transport, std::span<const Outlet> outlets,
                          std::size_t payload_bytes) {
    if (sent_ == count_) return 0;
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(sent_);
    const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(count_);
    // Insertion sort keeps the order within an address and allocates no memory.
    if (outlets.size() > 1)
        for (auto next = begin; next != end; ++next)
            std::rotate(std::upper_bound(
                            begin, next, *next,
                            [](const Entry& one, const Entry& other) { return one.outlet < other.outlet; }),
                        next, next + 1);
    int error = 0;
    for (auto at = begin; at != end;) {
        std::size_t count = 0;
        const std::uint32_t outlet = at->outlet;
        for (; at != end && at->outlet == outlet; ++at) batch_[count++] = {at->header, at->payload};
        const Sent sent = transport.send({batch_.data(), count}, outlets[outlet]);
        sent_ += sent.accepted;
        if (sent.accepted == count) continue;
        error = sent.error;
        if (error != 0) ++sent_;
        break;
    }
    if (sent_ == count_) {
        sent_ = count_ = 0;
        blocked_ = false;
    } else if (!blocked_) {
        copy_payloads(payload_bytes);
        blocked_ = true;
    }
    return error;
}

void MulticastQueue::copy_payloads(std::size_t payload_bytes) {
    if (!copies_) copies_.reset(new std::byte[payload_bytes * kMax]);
    for (std::size_t i = sent_; i < count_; ++i) {
        Entry& entry = entries_[i];
        if (entry.payload.empty()) continue;
        std::byte* copy = copies_.get() + i * payload_bytes;
        std::memcpy(copy, entry.payload.data(), entry.payload.size());
        entry.payload = Bytes(copy, entry.payload.size());
    }
}

}  // namespace mcastcoll::transport
