// Trunk: one gateway's side of what connects two sites.  Channels (connections of processes) are multiplexed
// over several streams (TCP connections between the gateways), so that a lost packet holds up one stream
// only; a frame goes to whichever stream has room.  A frame is kept until the peer acknowledges it on its
// stream; if the stream breaks, it is sent again on another, and the receiver knows by its sequence what it
// has already got.  Each channel's receiver says how much it takes (credit), so that one slow reader stops
// nobody else, and all that is held is bounded.
//
// Pure: no socket and no clock.  The owner says when streams come and go and what arrives, asks next() for
// what to write, and is told through Host what came out.  Calls from Host's functions back into the trunk are
// allowed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "trunk/channel.h"
#include "trunk/frame.h"
#include "trunk/sequence_window.h"
#include "trunk/token_bucket.h"

namespace mcastcoll::trunk {

inline constexpr unsigned kMaxStreams = 32;
inline constexpr std::size_t kUrgent = 4096;  // frames up to here go ahead of bulk
inline constexpr std::uint32_t kMinWindow = 4096;

struct Config {
    bool even = false;  // our channels have even numbers; the peer's then odd ones
    std::uint32_t first_window = 64 * 1024, opened_window = 256 * 1024, max_window = 8 * 1024 * 1024;
    std::size_t send_memory = 64 * 1024 * 1024, bulk_queue = 1024 * 1024;
    std::size_t max_channels = 32768;
    std::uint64_t cap_bytes_per_second = 0;
    Nanoseconds ack_delay = Nanoseconds::from_ms(5), heartbeat = Nanoseconds::from_ms(100),
                silence = Nanoseconds::from_ms(5000);
};

struct Counters {
    std::uint64_t sent_frames = 0, sent_bytes = 0, received_frames = 0, received_bytes = 0;
    std::uint64_t resent_frames = 0, duplicate_frames = 0, early_frames = 0, urgent_frames = 0;
    std::uint64_t channels_opened = 0, channels_accepted = 0, resets = 0, violations = 0;
    std::uint64_t streams_up = 0, streams_lost = 0, sessions_lost = 0, acks = 0, heartbeats = 0;
};

class Trunk {
  public:
    class Host {
      public:
        virtual ~Host() = default;
        // The peer opened a channel; this is what its open_channel() was given.
        virtual void opened(ChannelId channel, Bytes preface) = 0;
        // Takes as much as it can at once; the rest waits for drain().
        virtual std::size_t deliver(ChannelId channel, Bytes bytes) = 0;
        // All bytes were delivered, there will be no more.
        virtual void finished(ChannelId channel) = 0;
        // The channel is gone; the trunk has forgotten it as far as the host is concerned.
        virtual void was_reset(ChannelId channel) = 0;
    };

    Trunk(const Config& config, WindowPool& pool, Host& host);
    ~Trunk();
    Trunk(const Trunk&) = delete;
    Trunk& operator=(const Trunk&) = delete;

    // Streams.
    void stream_up(unsigned stream, Nanoseconds now);
    void stream_down(unsigned stream, Nanoseconds now);
    bool is_up(unsigned stream) const { return streams_[stream].up; }
    unsigned streams_up() const;
    // What the peer takes of each channel before credit; from its hello, before the first stream of a session
    // is up.
    void set_peer_window(std::uint32_t window) { peer_window_ = window; }
    // Drops everything: all channels are reset, all streams are down.
    void abandon(Nanoseconds now);

    // Channels.  Nothing if there are too many.
    std::optional<ChannelId> open_channel(Bytes preface);
    // How many bytes a frame to send() may have now; if none, the channel comes out of next_sendable() later.
    std::size_t may_send(ChannelId channel);
    void send(ChannelId channel, FramePointer frame);
    void finish(ChannelId channel);
    void reset(ChannelId channel);
    std::optional<ChannelId> next_sendable();
    // The owner of the channel can take bytes again.
    void drain(ChannelId channel);

    // What is to be written on this stream next, nothing at the moment if nullptr.  It stays where it is
    // until written() or given back, or until the stream is down.
    Frame* next(unsigned stream, Nanoseconds now);
    void written(unsigned stream, std::size_t frames);
    // The stream has no room for the last of what it got, up to so many frames, and has written nothing of
    // them: another one may have it sooner.  How many were taken back; acknowledgements and heartbeats, and
    // what is before them, stay.
    std::size_t give_back(unsigned stream, std::size_t frames);
    // Whether it has something to say of its own, which goes first.
    bool has_control(unsigned stream) const {
        const Stream& one = streams_[stream];
        return one.up && (one.ack_due || one.ping_due || one.pong_due);
    }
    // Whether more than small frames wait.
    bool bulk_waits() const { return !bulk_.empty() || !again_.empty(); }
    std::size_t bulk_bytes() const { return bulk_bytes_; }
    // Bytes that were handed to the stream and are not acknowledged.
    std::size_t in_flight(unsigned stream) const { return streams_[stream].in_flight; }

    // Anything came on this stream.
    void heard(unsigned stream, Nanoseconds now) { streams_[stream].heard = now; }
    // The time since was not the peers' fault: this process did not run.
    void forgive(Nanoseconds now);
    // An error is a violation of the protocol: the owner is to abandon() the session.
    Result<void> on_frame(unsigned stream, const FrameHeader& header, Bytes payload, Nanoseconds now);

    // Acknowledgements and heartbeats that are due come out of next() after this.
    void on_time(Nanoseconds now);
    Nanoseconds next_deadline() const;
    // A stream on which nothing came for too long.
    std::optional<unsigned> silent_stream(Nanoseconds now) const;

    const Counters& counters() const { return counters_; }
    std::size_t channels() const { return channels_.size(); }
    std::size_t memory_held() const { return held_; }
    std::size_t queued_frames() const { return again_.size() + urgent_.size() + bulk_.size(); }
    std::size_t inbox_bytes() const { return inbox_bytes_; }
    // Smoothed round trip of heartbeats; 0: not known.
    Nanoseconds round_trip(unsigned stream) const { return streams_[stream].round_trip; }

  private:
    struct Stream {
        bool up = false;
        std::deque<FramePointer> writing, unacked;
        std::size_t in_flight = 0;
        std::uint64_t acked = 0;
        std::uint64_t received = 0, received_bytes = 0, ack_sent = 0, ack_sent_bytes = 0;
        Nanoseconds ack_at = kNever, sent{0}, heard{0}, round_trip{0};
        bool ack_due = false, ping_due = false, pong_due = false;
        std::uint64_t pong = 0;
    };
    // Channels that are over go when the last call into the trunk returns.
    class Entry {
      public:
        explicit Entry(Trunk& trunk) : trunk_(trunk) { ++trunk_.depth_; }
        ~Entry() {
            if (--trunk_.depth_ == 0) trunk_.bury();
        }
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;

      private:
        Trunk& trunk_;
    };

    Channel* find(ChannelId id) const;
    Channel& create(ChannelId id, bool ours);
    void check_over(Channel& channel);
    void bury();
    bool has_room() const { return held_ < config_.send_memory && bulk_bytes_ < config_.bulk_queue; }
    void enqueue(Channel& channel, FramePointer frame);
    void enqueue_last(Channel& channel, FrameType type);
    void forget(FramePointer frame);
    void put_back(FramePointer frame);
    FramePointer take_sequenced(Nanoseconds now);
    FramePointer take_control(Stream& stream, Nanoseconds now);
    FramePointer take_credit();
    bool sequenced_waits() const {
        return !again_.empty() || !urgent_.empty() || !bulk_.empty() || !credits_.empty();
    }

    Result<void> acknowledged(Stream& stream, std::uint64_t count);
    Result<void> on_credit(const FrameHeader& header, Bytes payload);
    Result<void> on_ordered(const FrameHeader& header, Bytes payload);
    Result<void> process(Channel& channel, FrameType type, Bytes payload);
    Result<void> on_open(Channel& channel, Bytes payload);
    void on_data(Channel& channel, Bytes payload);
    void on_reset(Channel& channel);
    void tell_finish(Channel& channel);
    void consume(Channel& channel, std::size_t payload);
    void grow(Channel& channel, std::uint64_t to);
    void clear_inbox(Channel& channel);
    Result<void> violation(const char* what);

    const Config config_;
    WindowPool& pool_;
    Host& host_;
    std::array<Stream, kMaxStreams> streams_;
    std::unordered_map<ChannelId, std::unique_ptr<Channel>> channels_;
    std::vector<ChannelId> over_;
    unsigned depth_ = 0;
    ChannelId next_channel_;
    std::uint32_t peer_window_ = kMinWindow;

    std::deque<FramePointer> again_, urgent_, bulk_;
    std::deque<ChannelId> credits_, sendable_, wait_for_room_;
    std::size_t held_ = 0, bulk_bytes_ = 0, inbox_bytes_ = 0, urgent_in_a_row_ = 0;
    std::uint64_t next_sequence_ = 1;
    SequenceWindow acknowledged_, received_;
    TokenBucket bucket_;
    Counters counters_;
};

}  // namespace mcastcoll::trunk
