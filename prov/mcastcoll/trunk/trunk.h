// Trunk: one gateway's side of what connects two sites.  Channels (connections of processes) are multiplexed
// over several streams (TCP connections between the gateways); README.md says how.
//
// Pure: no socket and no clock.  The owner says when streams come and go and what arrives, asks next() for
// what to write, and is told through Host what came out.  Host's functions may call back into the trunk, but
// for on_frame(), on_time() and abandon().
#pragma once

#include <array>

#include "base/result.h"
#include "trunk/outbound.h"
#include "trunk/stream.h"

namespace mcastcoll::trunk {

class Trunk {
  public:
    Trunk(const Config& config, WindowPool& pool, Host& host);
    Trunk(const Trunk&) = delete;
    Trunk& operator=(const Trunk&) = delete;

    // Streams.
    void stream_up(unsigned stream, Nanoseconds now);
    void stream_down(unsigned stream);
    const Stream& stream(unsigned index) const { return streams_[index]; }
    unsigned streams_up() const;
    // What the peer takes of each channel before credit; from its hello, before the first stream of a session
    // is up.
    void set_peer_window(std::uint32_t window) { peer_window_ = window; }
    // Drops everything: all channels are reset, all streams are down.
    void abandon();

    // Channels.  Nothing if there are too many.
    std::optional<ChannelId> open_channel(Bytes preface);
    // How many bytes a frame to send() may have now; if none, the channel comes out of next_sendable() later.
    std::size_t may_send(ChannelId channel) { return outbound_.may_send(channel); }
    void send(ChannelId channel, FramePointer frame);
    void finish(ChannelId channel);
    void reset(ChannelId channel);
    std::optional<ChannelId> next_sendable() { return outbound_.next_sendable(); }
    // The owner of the channel can take bytes again.
    void drain(ChannelId channel);

    // What is to be written on this stream next, nothing at the moment if nullptr.  It is the last of the
    // stream's writing() until it is written() or given back, or until the stream is down.
    Frame* next(unsigned stream, Nanoseconds now);
    void written(unsigned stream, std::size_t frames) { streams_[stream].written(frames); }
    // The stream has no room for the last of what it got, up to so many frames, and has written nothing of
    // them: another one may have it sooner.  Acknowledgements and heartbeats, and what is before them, stay.
    void give_back(unsigned stream, std::size_t frames);
    const Outbound& outbound() const { return outbound_; }

    // Anything came on this stream.
    void heard(unsigned stream, Nanoseconds now) { streams_[stream].heard(now); }
    // The time since was not the peers' fault: this process did not run.
    void forgive(Nanoseconds now);
    // An error is a violation of the protocol: the owner is to abandon() the session.
    Result<void> on_frame(unsigned stream, const FrameHeader& header, Bytes payload, Nanoseconds now);

    // Acknowledgements and heartbeats that are due come out of next() after this; channels that are over go.
    void on_time(Nanoseconds now);
    Nanoseconds next_deadline() const;

    const Config& config() const { return config_; }
    const Counters& counters() const { return counters_; }
    std::size_t channels() const { return channels_.size(); }
    std::size_t inbox_bytes() const { return inbox_bytes_; }

  private:
    Result<void> violation(const char* what);
    Result<void> on_sequenced(const FrameHeader& header, Bytes payload);
    Result<void> on_ordered(const FrameHeader& header, Bytes payload);
    Result<void> process(Channel& channel, FrameType type, Bytes payload);
    Result<void> on_open(Channel& channel, Bytes payload);
    void on_data(Channel& channel, Bytes payload);
    void on_reset(Channel& channel);
    void tell_finish(Channel& channel);
    void discard(Channel& channel);
    void consume(Channel& channel, std::size_t payload);
    void owe_credit(Channel& channel);
    FramePointer take_credit();

    const Config config_;
    Host& host_;
    Counters counters_;
    std::array<Stream, kMaxStreams> streams_;
    Channels channels_;
    Outbound outbound_;
    std::uint32_t peer_window_ = kMinWindow;
    SequenceWindow received_;
    std::deque<ChannelId> credits_;  // that are due
    std::size_t inbox_bytes_ = 0;
};

}  // namespace mcastcoll::trunk
