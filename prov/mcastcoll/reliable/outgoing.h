// Packets of a sender, by number. Messages are packed into packets; the last packet is open until it is full
// or closed. Packets are contiguous, so a row of full packets goes to the kernel as one buffer.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "reliable/proof.h"

namespace mcastcoll::reliable {

class Outgoing {
  public:
    // Limit of packets per system call: 44 packets of 1,472 bytes (Ethernet) fit in 64 KiB, the system's
    // limit of bytes. The system's limit of packets is 64.
    static constexpr std::size_t kMaxInRow = 44;

    // data: header of all packets without number, oldest and serial. The proof must outlive this object.
    Outgoing(std::size_t window, std::size_t payload, const Header& data, Proof& proof);

    // Number after the last full or closed packet.
    std::uint64_t next() const { return next_; }
    std::uint64_t oldest() const { return oldest_; }
    bool empty() const { return oldest_ == next_ && !has_open(); }
    bool has_open() const { return open_ > 0; }
    // Number of closed packets that were never sent.
    std::size_t waiting() const { return next_ - unsent_; }

    // Limits the stored packets; never above the window.
    void limit(std::size_t packets) { limit_ = std::min(packets, places_.size()); }
    bool fits(std::size_t bytes) const;
    // True if the window is more than half full, because a receiver is far behind.
    bool is_crowded() const { return 2 * (next_ - oldest_) > limit_; }
    // Requires fits(). Copies the message.
    void append(Bytes message);
    void close();

    // The next unsent packets, each of `unit` bytes but the last, which may be shorter.
    struct Row {
        Bytes bytes;
        std::size_t unit = 0, packets = 0;
    };
    Row unsent();
    void sent(const Row& row) { unsent_ += row.packets; }

    // The bytes of a packet for retransmission; empty if the packet was not sent, is no longer stored, or was
    // retransmitted less than `since` ago.
    Bytes again(std::uint64_t number, Nanoseconds now, Nanoseconds since);
    // All receivers have the packets below `oldest`.
    void trim(std::uint64_t oldest);

  private:
    struct Place {
        std::size_t length = 0;
        Nanoseconds again{INT64_MIN / 2};
    };
    std::byte* at(std::uint64_t number) { return bytes_.get() + (number % places_.size()) * stride_; }

    const std::size_t payload_, stride_;
    const Header data_;
    Proof& proof_;
    std::vector<Place> places_;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t limit_;
    std::size_t open_ = 0;  // bytes in the open packet
    std::uint64_t next_ = 0, oldest_ = 0, unsent_ = 0;
};

}  // namespace mcastcoll::reliable
