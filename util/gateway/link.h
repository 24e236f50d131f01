// One stream of a trunk: a TCP connection to another gateway, from its greeting on.
#pragma once

#include <sys/uio.h>

#include "gateway/secure.h"
#include "gateway/shared.h"
#include "gateway/sockets.h"
#include "trunk/frame.h"
#include "trunk/hello.h"
#include "trunk/trunk.h"

namespace mcastcoll::gateway {

// How much a stream takes: what its kernel says of the congestion window, and what has been given to it
// since.
class StreamRoom {
  public:
    // Asks the kernel how much is under way, unless it has just said so.
    void look(int socket, Nanoseconds now);
    // Gives the stream the buffers that it needs.
    void fit_buffers(int socket) const;
    void note_sent(std::size_t bytes) { queued_ += static_cast<std::int64_t>(bytes); }

    Nanoseconds looked() const { return looked_; }
    // What the congestion window has room for beyond what is under way and waits; at least, but for losses
    // since looked().
    std::int64_t left() const { return window_ - queued_; }
    // Bytes a second, a window in a round trip; 0: not known.
    std::uint64_t rate() const { return rate_; }
    // How much may wait in the kernel beyond the window.
    std::size_t most_unsent() const;
    const std::optional<tcp_info>& info() const { return info_; }

  private:
    std::optional<tcp_info> info_;
    Nanoseconds looked_{0};
    std::int64_t window_ = 0, queued_ = 0;
    std::uint64_t rate_ = 0;
};

// What two gateways say to each other first, and what the key makes of it.
struct Greeting {
    trunk::Hello ours, theirs;
    trunk::HelloBytes our_bytes{};
    KeyPair keys;
    StreamKeys derived;
};

class Link;

// Whoever has the links of a trunk: it alone knows its session and which stream is whose, so it says whether
// a link belongs to it, and is told when one comes and goes.  Frames go straight to the trunk.
class LinkOwner {
  public:
    // The connector's: false if the link is of no use.
    virtual bool welcomed(Link& link, const trunk::Welcome& welcome) = 0;
    virtual void link_up(Link& link, std::uint32_t window) = 0;
    virtual void link_closed(Link& link, bool was_up, const char* why) = 0;
    virtual void violated(const std::string& what) = 0;

  protected:
    ~LinkOwner() = default;
};

class Link final : public Watched {
  public:
    struct Counters {
        std::uint64_t sent = 0, received = 0, idle_restarts = 0;
    };

    // connecting: the greeting has our hello only, and is said once the connection is there.  Otherwise we
    // were connected to, and it is over but for the welcome.
    Link(LinkOwner& owner, Shared& shared, trunk::Trunk& trunk, FileDescriptor socket, Greeting greeting,
         bool connecting);

    void on_events(std::uint32_t events) override;
    // The acceptor's first frame; separate, since it may fail.
    void welcome(const trunk::Welcome& words);
    // Writes what the trunk has for this stream, a frame at least and no more than fits into so many bytes
    // with the last; true if there may be more and it could be written.
    bool write(Nanoseconds now, std::size_t most);
    // How much it takes, once it is up.
    StreamRoom& room() { return room_; }
    void close(const char* why);

    bool is_up() const { return state_ == State::up; }
    bool can_write() const { return writable_ && state_ == State::up; }
    bool read_more() const { return readable_ && state_ == State::up; }
    void read();
    unsigned stream() const { return stream_; }
    std::uint64_t session() const { return greeting_.ours.session; }
    Nanoseconds deadline() const { return deadline_; }
    int descriptor() const { return socket_.get(); }
    const Counters& counters() const { return counters_; }
    std::size_t unsent() const;

  private:
    enum class State { connecting, hello, welcome, up, closed };

    void encrypt(const Secret& ours, const Secret& theirs);
    void connected();
    bool put(Bytes bytes);
    bool parse();
    bool on_hello(Bytes bytes);
    bool on_welcome(const trunk::FrameHeader& header, Bytes payload);
    void come_up(std::uint32_t window);
    bool refuse(std::uint64_t& counter, const char* why);
    bool on_frame(Bytes frame);
    bool write_plain(Nanoseconds now, std::size_t most);
    bool write_sealed(Nanoseconds now, std::size_t most);
    std::optional<std::size_t> send_pieces(std::span<iovec> pieces, Nanoseconds now, std::size_t most);
    Bytes arrived() const { return Bytes(received_).subspan(head_, tail_ - head_); }

    LinkOwner& owner_;
    Shared& shared_;
    trunk::Trunk& trunk_;
    const unsigned stream_;
    FileDescriptor socket_;
    State state_;
    bool readable_, writable_, peer_closed_ = false, idle_ = false;
    Nanoseconds deadline_, last_write_{0};
    Greeting greeting_;
    std::optional<Cipher> sealer_, opener_;

    std::vector<std::byte> received_;
    std::size_t head_ = 0, tail_ = 0;
    std::size_t first_sent_ = 0;     // plain: of the first frame that the trunk's stream is writing
    std::vector<std::byte> sealed_;  // encrypted: records that are not yet all written
    std::size_t sealed_sent_ = 0;
    Counters counters_;
    StreamRoom room_;
};

}  // namespace mcastcoll::gateway
