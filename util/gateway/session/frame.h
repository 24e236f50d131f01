// Frames: the contents of a stream after the hello. A frame is a header of 24 bytes in network byte order,
// and a payload:
//
//      0  type, 1 byte, and three bytes of zero      12  order: number of the frame in its channel
//      4  length of the payload                      16  sequence: number of the frame in its session, from 1
//      8  channel
//
// The sender stores a frame with a sequence number until the acknowledgement, and sends the frame again on
// another stream if the first one breaks. ack, ping and pong belong to one stream: without a sequence number,
// these types use the field for other values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/types.h"

namespace mcastcoll::gateway::session {

enum class FrameType : std::uint8_t {
    open = 1,    // new connection; payload: the opener's first window and the preface
    data = 2,    // bytes of a connection
    finish = 3,  // no more bytes: the sender's half is closed
    reset = 4,   // both halves of the connection are gone; the sender's last frame of the channel
    close = 5,   // the sender's last frame of the channel: both halves are finished, or the peer has reset it
    credit = 6,  // payload: limit, in cost, up to which the receiver accepts this channel's data
    ack = 7,     // number of frames with a sequence received on this stream
    ping = 8,    // keeps a stream alive; its number is returned in a pong
    pong = 9,
    welcome = 10,  // the acceptor's first frame: its session, the connector's session as known to it, its
                   // first window
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
// Whether frames of this type arrive in the order of their channel: all frames with a sequence do, except
// credit, which may overtake other frames.
constexpr bool is_ordered(FrameType type) {
    return type <= FrameType::close;
}
// The cost of a data frame against its channel's credit. It includes the header because many tiny frames cost
// memory, too.
constexpr std::uint64_t cost_of(std::size_t payload) {
    return payload + kHeaderSize;
}

void put_header(std::byte* at, const FrameHeader& header);
// Returns nothing if the 24 bytes are no valid frame header.
std::optional<FrameHeader> get_header(Bytes bytes);

// A frame and its memory: the header and payload to be sent.
class Frame {
  public:
    explicit Frame(std::size_t capacity)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(kHeaderSize + capacity)), capacity_(capacity) {}
    explicit Frame(const FrameHeader& header, Bytes payload = {});  // sets header.length

    FrameHeader header;
    bool bulk = false;  // must not overtake other frames

    MutableBytes space() { return {bytes_.get() + kHeaderSize, capacity_}; }
    Bytes payload() const { return {bytes_.get() + kHeaderSize, header.length}; }
    // Header and payload as sent. Valid only after seal().
    Bytes bytes() const { return {bytes_.get(), kHeaderSize + header.length}; }
    void seal() { put_header(bytes_.get(), header); }
    std::size_t memory() const { return sizeof(Frame) + kHeaderSize + capacity_; }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_;
};
using FramePointer = std::unique_ptr<Frame>;

}  // namespace mcastcoll::gateway::session
