// What comes into a trunk on its channels: frames are put in order, handed to the host as far as it takes
// them, and what it has taken is granted again.
#pragma once

#include <deque>

#include "base/result.h"
#include "trunk/outbound.h"

namespace mcastcoll::trunk {

class Inbound {
  public:
    Inbound(const Config& config, Channels& channels, Outbound& outbound, Host& host, Counters& counters);

    // A frame that has a place among its channel's. An error is a violation of the protocol.
    Result<void> on_frame(const FrameHeader& header, Bytes payload);
    // The owner of the channel can take bytes again.
    void drain(Channel& channel);
    // Nobody takes what has come, and what comes.
    void discard(Channel& channel);

    bool credit_waits() const { return !credits_.empty(); }
    // A frame of credit that is due, or null.
    FramePointer take_credit();
    std::size_t inbox_bytes() const { return inbox_bytes_; }
    void clear();

    Result<void> violation(const char* what);

  private:
    Result<void> process(Channel& channel, FrameType type, Bytes payload);
    Result<void> on_open(Channel& channel, Bytes payload);
    void on_data(Channel& channel, Bytes payload);
    void on_reset(Channel& channel);
    void tell_finish(Channel& channel);
    void consume(Channel& channel, std::size_t payload);
    void owe_credit(Channel& channel);

    const Config& config_;
    Channels& channels_;
    Outbound& outbound_;
    Host& host_;
    Counters& counters_;
    std::deque<ChannelId> credits_;
    std::size_t inbox_bytes_ = 0;
};

}  // namespace mcastcoll::trunk
