// A stream of a gateway session: a TCP connection between two gateways, from the hello on (the connector's
// first message, session/hello.h).
#pragma once

#include <sys/uio.h>

#include "gateway/link_owner.h"
#include "gateway/session/frame.h"
#include "gateway/session/hello.h"
#include "gateway/session/session.h"
#include "gateway/shared.h"
#include "gateway/stream_room.h"
#include "gateway/tls.h"

namespace mcastcoll::gateway {

class Link final : public Watched {
  public:
    struct Counters {
        std::uint64_t sent = 0, received = 0, idle_restarts = 0;
    };

    // Takes an outgoing connection, and sends `hello` once connected.
    Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
         const session::Hello& hello);
    // Takes an incoming connection whose hello has been read; the caller must then call welcome(). `tls` is
    // null without a key.
    Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
         const session::Hello& hello, std::unique_ptr<Tls> tls);

    void on_events(std::uint32_t events) override;
    // Sends the acceptor's first frame; separate from the constructor, because it may fail.
    void welcome(const session::Welcome& answer);
    // Writes frames of the session for this stream: at least one frame, and no more than fit into `max`
    // bytes including the last. Returns true if the socket accepted them and more frames may be pending.
    bool write(Nanoseconds now, std::size_t max);
    // Valid once the link is up.
    StreamRoom& room() { return room_; }
    void close(const std::string& why);

    bool is_up() const { return state_ == State::up; }
    bool can_write() const { return writable_ && state_ == State::up; }
    bool read_more() const { return readable_ && state_ == State::up; }
    void read();
    unsigned stream() const { return stream_; }
    // The session number in the hello of this stream, which is the connector's.
    std::uint64_t session_id() const { return hello_.session; }
    Nanoseconds deadline() const { return deadline_; }
    int descriptor() const { return socket_.get(); }
    const Counters& counters() const { return counters_; }
    std::size_t unsent() const;

  private:
    enum class State { connecting, handshake, welcome, up, closed };

    Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
         const session::Hello& hello, std::unique_ptr<Tls> tls, bool connecting);
    void connected();
    void shake_hands();
    bool put(Bytes bytes);
    std::optional<std::size_t> take(MutableBytes room);
    std::optional<std::size_t> take_by_tls(MutableBytes room);
    bool parse();
    bool on_welcome(const session::FrameHeader& header, Bytes payload);
    void come_up(std::uint32_t window);
    bool refuse(std::uint64_t& counter, const std::string& why);
    bool on_frame(const session::FrameHeader& header, Bytes payload);
    bool write_plain(Nanoseconds now, std::size_t max);
    bool write_by_tls(Nanoseconds now, std::size_t max);
    std::optional<std::size_t> send_pieces(std::span<iovec> pieces, Nanoseconds now, std::size_t max);
    Bytes arrived() const { return Bytes(received_).subspan(head_, tail_ - head_); }

    LinkOwner& owner_;
    Shared& shared_;
    session::Session& session_;
    const unsigned stream_;
    FileDescriptor socket_;
    State state_;
    bool readable_, writable_, peer_closed_ = false, idle_ = false;
    Nanoseconds deadline_, last_write_{0};
    const session::Hello hello_;
    std::unique_ptr<Tls> tls_;  // null without a key

    std::vector<std::byte> received_;
    std::size_t head_ = 0, tail_ = 0;
    std::size_t first_sent_ = 0;    // plain: bytes sent of the first frame that the stream is writing
    std::size_t records_sent_ = 0;  // with TLS: bytes sent of the pending records
    Counters counters_;
    StreamRoom room_;
};

}  // namespace mcastcoll::gateway
