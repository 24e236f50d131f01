// The two ends of a window of packets, each a ring by packet number: packets that a sender keeps until every
// receiver has them, and received packets of a sender, with a memory limit for all senders together. Also the
// pacing of a sender.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "reliable/proof.h"

namespace mcastcoll::reliable {

// Packets of a sender, by number. Messages are packed into packets; the last packet is open until it is full
// or closed. Packets are contiguous, so a row of full packets goes to the kernel as one buffer.
class Outgoing {
  public:
    // Limit of packets per system call; the system's own limits are 64 packets and 64 KiB.
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
    // A receiver is far behind: the window is more than half full.
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

    // The bytes of a packet for retransmission; empty if it was not sent, is no longer stored, or was sent
    // again within `since`.
    Bytes again(std::uint64_t number, Nanoseconds now, Nanoseconds since);
    // All receivers have the packets below.
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

// Memory limit for out-of-order packets of all senders: half of the memory is divided evenly, and the rest is
// first come, first served.
class Store {
  public:
    Store(std::size_t bytes, std::size_t senders) : share_(bytes / 2 / senders), left_(bytes / 2) {}

    // For a sender that has `own` bytes.
    bool take(std::size_t own, std::size_t bytes) {
        const std::size_t more = beyond(own + bytes) - beyond(own);
        if (more > left_) return false;
        left_ -= more;
        return true;
    }
    // For a sender that still has `own` bytes.
    void give_back(std::size_t own, std::size_t bytes) { left_ += beyond(own) - beyond(own - bytes); }
    // Bytes left beyond the shares.
    std::size_t left() const { return left_; }

  private:
    std::size_t beyond(std::size_t own) const { return own > share_ ? own - share_ : 0; }

    const std::size_t share_;
    std::size_t left_;
};

enum class Put : std::uint8_t {
    taken,
    useless,  // a duplicate, or outside the window
    no_room,  // not stored: counts as missing
};

// Packets of one sender in any order within a window, taken out in order.
class Incoming {
  public:
    // start: first expected number; skip_to() may change the start until a piece is taken. The store must
    // outlive this object.
    Incoming(std::size_t window, std::size_t payload, std::uint64_t start, Store& store);
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    Put put(std::uint64_t number, Bytes body);
    // The sender has sent all packets below.
    void note_end(std::uint64_t next);
    // Packets below are no longer available. False if such a packet is missing after a piece was taken.
    bool skip_to(std::uint64_t oldest);

    // The next packet, and the offset up to which its pieces were taken.
    bool ready() const { return present(taken_); }
    Bytes body() const;
    std::size_t offset() const { return offset_; }
    // A piece that ends at this offset was taken.
    void take_piece(std::uint8_t flags, std::size_t end);
    // Ends the next packet, stored here or not.
    void take();

    // The last piece taken did not end a message.
    bool in_message() const { return in_message_; }
    std::uint64_t taken() const { return taken_; }
    // The first missing packet: all below are here or taken.
    std::uint64_t first_missing();
    bool has_gap() { return first_missing() < end_; }
    // Fills the bitmap from first_missing() on; returns its length in bytes.
    std::size_t missing(MutableBytes bitmap);

  private:
    struct Place {
        std::unique_ptr<std::byte[]> bytes;  // null: missing
        std::size_t length = 0;
    };
    bool present(std::uint64_t number) const {
        return number < taken_ + places_.size() && places_[number % places_.size()].bytes;
    }
    void clear(std::uint64_t number);

    const std::size_t payload_;
    Store& store_;
    std::size_t kept_ = 0;  // bytes
    std::vector<Place> places_;
    std::uint64_t taken_, complete_, end_;
    std::size_t offset_ = 0;
    bool begun_ = false, in_message_ = false;
};

// Limits packets that are not full: a burst of a few, then one per pause. Messages that come faster are
// packed together, which delays a message by some microseconds at most and saves all receivers a packet each.
class Pacer {
  public:
    static constexpr Nanoseconds kPause = Nanoseconds::from_us(50);
    static constexpr std::int64_t kBurst = 8;

    explicit Pacer(Nanoseconds now) : full_at_(now) {}

    // Takes the permission to send now, if available.
    bool take(Nanoseconds now) {
        if (now < next()) return false;
        force(now);
        return true;
    }
    // Sends without permission, at the expense of later permissions.
    void force(Nanoseconds now) { full_at_ = std::max(full_at_, now) + kPause; }
    Nanoseconds next() const { return full_at_ - Nanoseconds{(kBurst - 1) * kPause.value}; }

  private:
    Nanoseconds full_at_;  // when the whole burst is available again
};

}  // namespace mcastcoll::reliable
