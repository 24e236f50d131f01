// The multicasts of one group waiting for a transport, in order for each address. Datagrams for which the
// transport has no room are copied, because the application may reuse the payload's memory before the next
// attempt. No more datagrams are accepted until the copies have been sent.
#pragma once

#include <array>
#include <cassert>
#include <memory>
#include <span>

#include "transport/multicast_transport.h"
#include "wire/packet.h"

namespace mcastcoll::transport {

class MulticastQueue {
  public:
    // The largest run of full Ethernet datagrams, 65,000 bytes (UdpSender). Runs are sent one at a time, so
    // receivers process one run while the sender prepares the next one.
    static constexpr std::size_t kMax = 44;

    // Whether datagrams wait for the transport. While they wait, call flush(), not add().
    bool blocked() const { return blocked_; }
    bool full() const { return count_ == kMax; }
    // Call only when neither blocked nor full. The payload must stay unchanged until the next flush().
    void add(const wire::HeaderBytes& header, Bytes payload, std::uint32_t outlet) {
        assert(!blocked_ && !full());
        entries_[count_++] = {header, payload, outlet};
    }
    // Sends as many datagrams as the transport accepts. Drops a datagram that cannot be sent at all, and
    // returns its errno; otherwise returns 0. Payloads have at most `payload_bytes` bytes.
    int flush(MulticastTransport& transport, std::span<const Outlet> outlets, std::size_t payload_bytes);
    // Called when the payloads belong to the application again: drops datagrams without a copy.
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

    std::array<Entry, kMax> entries_{};
    std::array<Datagram, kMax> batch_{};
    std::size_t count_ = 0, sent_ = 0;
    std::unique_ptr<std::byte[]> copies_;
    bool blocked_ = false;
};

}  // namespace mcastcoll::transport
