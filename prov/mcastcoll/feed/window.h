// The two ends of a window of packets, each a ring by number: what a sender keeps until all receivers have
// it, and what a receiver has of one sender, in memory that is bounded for all senders together. And how
// often a sender may send.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "feed/proof.h"

namespace mcastcoll::feed {

// Whole packets, by number. Messages are packed into them: the last one is open until it is full or closed.
// Packets lie one behind the other, so that a row of full ones can be handed to the kernel as one.
class Outgoing {
  public:
    // Packets that one call of the system sends at most; the system's own bounds are 64 and 64 KiB.
    static constexpr std::size_t kMostInRow = 44;

    // The header of all packets, but for number, oldest and serial. The proof outlives this.
    Outgoing(std::size_t window, std::size_t payload, const Header& data, Proof& proof);

    // Of the packets that are full or closed.
    std::uint64_t next() const { return next_; }
    std::uint64_t oldest() const { return oldest_; }
    bool empty() const { return oldest_ == next_ && !has_open(); }
    bool has_open() const { return open_ > 0; }
    // How many are closed and have never been sent.
    std::size_t waiting() const { return next_ - unsent_; }

    // Packets that may be kept at once; never more than the window.
    void limit(std::size_t packets) { limit_ = std::min(packets, places_.size()); }
    bool fits(std::size_t bytes) const;
    // A receiver is far behind.
    bool is_crowded() const { return 2 * (next_ - oldest_) > limit_; }
    // The message must fit. The bytes are copied.
    void append(Bytes message);
    void close();

    // The first that have not been sent: all of `unit` bytes but the last one, which may be shorter.
    struct Row {
        Bytes bytes;
        std::size_t unit = 0, packets = 0;
    };
    Row unsent();
    void sent(const Row& row) { unsent_ += row.packets; }

    // The same bytes again, if it was sent, is kept, and was not sent again within `since`.
    Bytes again(std::uint64_t number, Nanoseconds now, Nanoseconds since);
    // All below have been received.
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
    std::size_t open_ = 0;  // bytes in the packet behind the last closed one
    std::uint64_t next_ = 0, oldest_ = 0, unsent_ = 0;
};

// How many bytes the packets of all senders may have that came before their turn: each has a share of its
// own, of half of them, and more while the other half lasts.
class Store {
  public:
    Store(std::size_t bytes, std::size_t senders) : share_(bytes / 2 / senders), left_(bytes / 2) {}

    // For somebody who has `own` bytes.
    bool take(std::size_t own, std::size_t bytes) {
        const std::size_t more = beyond(own + bytes) - beyond(own);
        if (more > left_) return false;
        left_ -= more;
        return true;
    }
    // By somebody who has `own` bytes yet.
    void give_back(std::size_t own, std::size_t bytes) { left_ += beyond(own) - beyond(own - bytes); }
    // Beyond shares.
    std::size_t left() const { return left_; }

  private:
    std::size_t beyond(std::size_t own) const { return own > share_ ? own - share_ : 0; }

    const std::size_t share_;
    std::size_t left_;
};

enum class Put : std::uint8_t {
    taken,
    useless,  // it is here already, or outside the window
    no_room,  // it is missing from now on
};

// Packets in any order within a window, taken out in the order of their numbers.
class Incoming {
  public:
    // The first number that counts; until something is taken, skip_to() may move it. The store outlives this.
    Incoming(std::size_t window, std::size_t payload, std::uint64_t start, Store& store);
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    Put put(std::uint64_t number, Bytes body);
    // The sender has sent everything below.
    void note_end(std::uint64_t next);
    // What is below can no longer be had. False: something of it is missing, and something was taken already.
    bool skip_to(std::uint64_t oldest);

    // The next packet, and how much of it has been taken.
    bool ready() const { return present(taken_); }
    Bytes body() const;
    std::size_t offset() const { return offset_; }
    // A piece was taken, which reaches to this offset.
    void take_piece(std::uint8_t flags, std::size_t end);
    // Nothing is left in the next packet, whether it was ever put here or not.
    void take();

    // The last piece taken was not the end of a message.
    bool in_message() const { return in_message_; }
    std::uint64_t taken() const { return taken_; }
    // The first that is missing: everything below is here or taken.
    std::uint64_t first_missing();
    bool has_gap() { return first_missing() < end_; }
    // Fills the bitmap from first_missing() on; returns how many bytes of it count.
    std::size_t missing(MutableBytes bitmap);

  private:
    struct Place {
        std::unique_ptr<std::byte[]> bytes;  // null: not here
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

// How often a sender may send packets that are not full: a burst of a few at once, then one in a while. What
// comes faster is packed together, which costs a message some microseconds at most and saves everybody a
// packet for each.
class Pacer {
  public:
    static constexpr Nanoseconds kPause = Nanoseconds::from_us(50);
    static constexpr std::int64_t kBurst = 8;

    explicit Pacer(Nanoseconds now) : full_at_(now) {}

    // Takes the permission to send now, if there is one.
    bool take(Nanoseconds now) {
        if (now < next()) return false;
        force(now);
        return true;
    }
    // Sends without asking; that counts.
    void force(Nanoseconds now) { full_at_ = std::max(full_at_, now) + kPause; }
    Nanoseconds next() const { return full_at_ - Nanoseconds{(kBurst - 1) * kPause.value}; }

  private:
    Nanoseconds full_at_;  // when the whole burst may be sent again
};

}  // namespace mcastcoll::feed
