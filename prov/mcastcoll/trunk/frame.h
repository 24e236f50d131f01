// Frames: what a trunk's streams carry once they are up.  A header of 24 bytes, in network byte order, and a
// payload:
//
//      0  type, 1 byte, and three bytes of zero      12  order: number of the frame in its channel
//      4  length of the payload                      16  sequence: number of the frame in its trunk, from 1
//      8  channel
//
// Frames with a sequence are kept by their sender until they are acknowledged, and sent again on another
// stream if theirs breaks. ack, ping and pong belong to one stream, have no sequence and use the field for
// their own number.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/types.h"

namespace mcastcoll::trunk {

enum class FrameType : std::uint8_t {
    open = 1,    // a new connection; payload: its preface and how much the opener takes
    data = 2,    // bytes of a connection
    finish = 3,  // no more bytes: the sender's half is closed
    reset = 4,   // the connection is gone, both halves; the sender's last frame of the channel
    close = 5,   // the sender's last frame of the channel: both halves are finished, or the peer has reset it
    credit = 6,  // payload: up to where, in cost, the receiver takes this channel's data
    ack = 7,     // so many frames with a sequence have come on this stream
    ping = 8,    // keeps a stream warm; the number comes back in a pong
    pong = 9,
    welcome =
        10,  // the acceptor's first frame: its session, the connector's as it knows it, its first window
};

using ChannelId = std::uint32_t;

struct FrameHeader {
    FrameType type = FrameType::data;
    std::uint32_t length = 0;
    ChannelId channel = 0;
    std::uint32_t order = 0;
    std::uint64_t sequence = 0;
};

inline constexpr std::size_t kHeaderSize = 24;
inline constexpr std::size_t kMaxPayload = 64 * 1024;
inline constexpr std::size_t kCreditSize = 8, kWelcomeSize = 20;

constexpr bool is_sequenced(FrameType type) {
    return type <= FrameType::credit;
}
// Has its place among its channel's frames: all with a sequence but credit, which may overtake.
constexpr bool is_ordered(FrameType type) {
    return type <= FrameType::close;
}
// What a data frame takes of its channel's credit: many tiny frames cost memory, too.
constexpr std::uint64_t cost_of(std::size_t payload) {
    return payload + kHeaderSize;
}

void put_header(std::byte* at, const FrameHeader& header);
// Nothing if these 24 bytes are no header of a frame.
std::optional<FrameHeader> get_header(Bytes bytes);

// A frame and the memory that it is read into and written from.
class Frame {
  public:
    explicit Frame(std::size_t capacity)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(kHeaderSize + capacity)), capacity_(capacity) {}
    explicit Frame(const FrameHeader& header, Bytes payload = {});  // its length is the payload's

    FrameHeader header;
    bool bulk = false;  // not ahead of others

    MutableBytes space() { return {bytes_.get() + kHeaderSize, capacity_}; }
    Bytes payload() const { return {bytes_.get() + kHeaderSize, header.length}; }
    // Header and payload as they travel; after seal() alone.
    Bytes bytes() const { return {bytes_.get(), kHeaderSize + header.length}; }
    void seal() { put_header(bytes_.get(), header); }
    std::size_t memory() const { return sizeof(Frame) + kHeaderSize + capacity_; }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_;
};
using FramePointer = std::unique_ptr<Frame>;

// Which of a trunk's frames have come (at the receiver) or are acknowledged (at the sender): all below a
// number, and some of the next 65536.  The sender keeps within that of its oldest unacknowledged frame, so a
// number beyond is nobody's mistake but the peer's.
class SequenceWindow {
  public:
    static constexpr std::uint64_t kSize = 65536;
    enum class Verdict { fresh, known, beyond };

    Verdict add(std::uint64_t sequence) {
        if (sequence < below_) return Verdict::known;
        if (!fits(sequence)) return Verdict::beyond;
        if (bits_->test(sequence % kSize)) return Verdict::known;
        bits_->set(sequence % kSize);
        while (bits_->test(below_ % kSize)) bits_->reset(below_++ % kSize);
        return Verdict::fresh;
    }
    bool fits(std::uint64_t sequence) const { return sequence - below_ < kSize; }

  private:
    std::uint64_t below_ = 1;
    std::unique_ptr<std::bitset<kSize>> bits_ = std::make_unique<std::bitset<kSize>>();
};

}  // namespace mcastcoll::trunk
