// Session: one gateway's side of a gateway session between two sites. Channels (connections of processes) are
// multiplexed over several streams (TCP connections between the gateways); see README.md.
//
// Contains no socket and no clock. The owner reports when streams come and go and which frames arrive, calls
// next() for frames to write, and receives results through Host. Host's functions may call back, except for
// on_frame(), on_time() and abandon().
#pragma once

#include <array>

#include "base/result.h"
#include "gateway/session/host.h"
#include "gateway/session/outbound.h"
#include "gateway/session/stream.h"

namespace mcastcoll::gateway::session {

class Session {
  public:
    Session(const Config& config, WindowPool& pool, Host& host);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // Streams.
    void stream_up(unsigned stream, Nanoseconds now);
    void stream_down(unsigned stream);
    const Stream& stream(unsigned index) const { return streams_[index]; }
    unsigned streams_up() const;
    // Sets the cost of data (frame.h) that the peer accepts on each channel before any credit. The value is
    // in the peer's hello, and is set before the first stream of a session is up.
    void set_peer_window(std::uint32_t window) { peer_window_ = window; }
    // Drops the whole state: channels are reset, streams are down.
    void abandon();

    // Opens a channel; returns nothing if there are too many.
    std::optional<ChannelId> open_channel(Bytes preface);
    // Number of bytes that a frame passed to send() may have now. If 0, next_sendable() returns the channel
    // later.
    std::size_t may_send(ChannelId channel) { return outbound_.may_send(channel); }
    void send(ChannelId channel, FramePointer frame);
    void finish(ChannelId channel);
    void reset(ChannelId channel);
    std::optional<ChannelId> next_sendable() { return outbound_.next_sendable(); }
    // Delivers the channel's stored bytes: its owner can take bytes again.
    void drain(ChannelId channel);

    // Returns the next frame to write on this stream, or nullptr if there is none now. The frame is the last
    // of the stream's writing() until it is written() or given back, or until the stream is down.
    Frame* next(unsigned stream, Nanoseconds now);
    void written(unsigned stream, std::size_t frames) { streams_[stream].written(frames); }
    // Returns up to this number of frames, the last ones passed to the stream and still unwritten, because
    // another stream may send them sooner. Stops at the first acknowledgement or heartbeat.
    void give_back(unsigned stream, std::size_t frames);
    const Outbound& outbound() const { return outbound_; }

    // Any bytes arrived on this stream.
    void note_input(unsigned stream, Nanoseconds now) { streams_[stream].note_input(now); }
    // Restarts the silence timeouts after this process was suspended, which is not the peers' fault.
    void forgive(Nanoseconds now);
    // An error is a protocol violation: the owner must abandon() the session.
    Result<void> on_frame(unsigned stream, const FrameHeader& header, Bytes payload, Nanoseconds now);

    // Makes due acknowledgements and heartbeats available to next(), and removes finished channels.
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
    void report_finish(Channel& channel);
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
    std::deque<ChannelId> credits_;  // channels that owe a credit frame
    std::size_t inbox_bytes_ = 0;
};

}  // namespace mcastcoll::gateway::session
