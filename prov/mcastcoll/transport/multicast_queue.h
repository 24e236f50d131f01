// Multicasts of one group that are on their way to a transport, in order within an address. What the
// transport cannot take at once is copied, because the memory behind a payload may be the application's again
// before the next try; nothing more is taken until that is gone.
#pragma once

#include <array>
#include <cassert>
#include <memory>
#include <span>

#include "transport/multicast_transport.h"
#include "wire/packet.h"

namespace mcastcoll {

class MulticastQueue {
  public:
    // The largest run of full Ethernet datagrams (UdpSender). One at a time, so that receivers begin with it
    // while the next is made.
    static constexpr std::size_t kMost = 44;

    // Something waits for the transport: flush(), and add nothing.
    bool blocked() const { return blocked_; }
    bool full() const { return count_ == kMost; }
    // Call only when neither blocked nor full. The payload stays where it is until the next flush().
    void add(const wire::HeaderBytes& header, Bytes payload, std::uint32_t outlet) {
        assert(!blocked_ && !full());
        entries_[count_++] = {header, payload, outlet};
    }
    // Hands over what the transport takes. A datagram that it can never take is dropped, and its errno
    // returned; 0 otherwise. Payloads have at most so many bytes.
    int flush(MulticastTransport& transport, std::span<const Outlet> outlets, std::size_t payload_bytes);
    // The payloads are the application's again: what is not a copy is not sent any more.
    void forget_payloads() {
        if (!blocked_) sent_ = count_ = 0;
    }

  private:
    struct Entry {
        wire::HeaderBytes header{};
        Bytes payload;
        std::uint32_t outlet = 0;
    };
    void copy_payloads(std::size_t payload_bytes);

    std::array<Entry, kMost> entries_{};
    std::array<Datagram, kMost> batch_{};
    std::size_t count_ = 0, sent_ = 0;
    std::unique_ptr<std::byte[]> copies_;
    bool blocked_ = false;
};

}  // namespace mcastcoll
