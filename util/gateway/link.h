// One stream of a trunk: a TCP connection to another gateway, from its greeting on.
#pragma once

#include <sys/uio.h>

#include "gateway/shared.h"
#include "gateway/sockets.h"
#include "gateway/tls.h"
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

class Link;

// Whoever has the links of a trunk: it alone knows its session and which stream is whose, so it says whether
// a link belongs to it, and is told when one comes and goes.  Frames go straight to the trunk.
class LinkOwner {
  public:
    // The connector's: false if the link is of no use.
    virtual bool welcomed(Link& link, const trunk::Welcome& welcome) = 0;
    virtual void link_up(Link& link, std::uint32_t window) = 0;
    virtual void link_closed(Link& link, bool was_up, const std::string& why) = 0;
    virtual void violated(const std::string& what) = 0;

  protected:
    ~LinkOwner() = default;
};

class Link final : public Watched {
  public:
    struct Counters {
        std::uint64_t sent = 0, received = 0, idle_restarts = 0;
    };

    // We connect; this is our hello, which is said once the connection is there.
    Link(LinkOwner& owner, Shared& shared, trunk::Trunk& trunk, FileDescriptor socket,
         const trunk::Hello& hello);
    // We were connected to; this was their hello, and the welcome is to follow.  tls: null without a key.
    Link(LinkOwner& owner, Shared& shared, trunk::Trunk& trunk, FileDescriptor socket,
         const trunk::Hello& hello, std::unique_ptr<Tls> tls);

    void on_events(std::uint32_t events) override;
    // The acceptor's first frame; separate, since it may fail.
    void welcome(const trunk::Welcome& words);
    // Writes what the trunk has for this stream, a frame at least and no more than fits into so many bytes
    // with the last; true if there may be more and it could be written.
    bool write(Nanoseconds now, std::size_t most);
    // How much it takes, once it is up.
    StreamRoom& room() { return room_; }
    void close(const std::string& why);

    bool is_up() const { return state_ == State::up; }
    bool can_write() const { return writable_ && state_ == State::up; }
    bool read_more() const { return readable_ && state_ == State::up; }
    void read();
    unsigned stream() const { return stream_; }
    // Whose hello it was.
    std::uint64_t session() const { return hello_.session; }
    Nanoseconds deadline() const { return deadline_; }
    int descriptor() const { return socket_.get(); }
    const Counters& counters() const { return counters_; }
    std::size_t unsent() const;

  private:
    enum class State { connecting, handshake, welcome, up, closed };

    Link(LinkOwner& owner, Shared& shared, trunk::Trunk& trunk, FileDescriptor socket,
         const trunk::Hello& hello, std::unique_ptr<Tls> tls, bool connecting);
    void connected();
    void shake_hands();
    bool put(Bytes bytes);
    std::optional<std::size_t> take(MutableBytes room);
    std::optional<std::size_t> take_by_tls(MutableBytes room);
    bool parse();
    bool on_welcome(const trunk::FrameHeader& header, Bytes payload);
    void come_up(std::uint32_t window);
    bool refuse(std::uint64_t& counter, const std::string& why);
    bool on_frame(const trunk::FrameHeader& header, Bytes payload);
    bool write_plain(Nanoseconds now, std::size_t most);
    bool write_by_tls(Nanoseconds now, std::size_t most);
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
    const trunk::Hello hello_;
    std::unique_ptr<Tls> tls_;  // null: nobody has a key

    std::vector<std::byte> received_;
    std::size_t head_ = 0, tail_ = 0;
    std::size_t first_sent_ = 0;    // plain: of the first frame that the trunk's stream is writing
    std::size_t records_sent_ = 0;  // by TLS: of what it has to write
    Counters counters_;
    StreamRoom room_;
};

}  // namespace mcastcoll::gateway
