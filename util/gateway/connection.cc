#include "gateway/connection.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "gateway/peer.h"
#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

// Frames up to this size get memory of their own size, and the large buffer is reused.
constexpr std::size_t kWorthCopying = 16 * 1024;
// Time limit to connect to a process.
constexpr Nanoseconds kConnectTime = Nanoseconds::from_ms(10000);
// Delay before a channel is reset when its socket is broken and the session accepts no data.
constexpr Nanoseconds kBrokenTime = Nanoseconds::from_ms(2000);
// The kernel resets a connection's congestion window after an idle retransmission timeout, which is at least
// this long.
constexpr Nanoseconds kIdleTime = Nanoseconds::from_ms(200);

}  // namespace

Connection::Connection(Peer& peer, session::ChannelId channel, FileDescriptor socket,
                       const std::optional<Preface>& preface)
    : peer_(peer),
      channel_(channel),
      socket_(std::move(socket)),
      connecting_(preface.has_value()),
      readable_(!connecting_),
      writable_(!connecting_) {
    // Sends at once, and detects the failure of an idle peer's host after a minute.
    set_option(socket_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, 30);
    set_option(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set_option(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, 3);
    if (!preface) return;
    peer.waiting()[this] = peer.shared().now() + kConnectTime;
    preface_ = encode_preface(*preface);
}

void Connection::on_events(std::uint32_t events) {
    if (!socket_.valid()) return;
    if (connecting_ && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        connected();
        if (!socket_.valid()) return;
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) peer_closed_ = true;
    if ((events & EPOLLERR) != 0) broken_ = true;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
    if ((events & EPOLLOUT) != 0 && !writable_) {
        writable_ = true;
        peer_.session().drain(channel_);
        if (!socket_.valid()) return;
    }
    // After the end of input no read() follows that would report the error of a broken socket.
    if (broken_ && read_all_) return fail();
    pump();
}

void Connection::connected() {
    if (option_of<int>(socket_.get(), SOL_SOCKET, SO_ERROR) != 0) {
        ++peer_.shared().counters.targets_failed;
        return fail();
    }
    connecting_ = false;
    peer_.waiting().erase(this);
    std::size_t sent = 0;
    if (!send_what_fits(socket_.get(), preface_, sent) || sent < preface_.size()) return fail();
    writable_ = true;
    peer_.session().drain(channel_);
    if (socket_.valid() && finish_wanted_) finish();
}

void Connection::pump() {
    if (connecting_) return;
    for (unsigned reads = 0; readable_ && !read_all_ && socket_.valid(); ++reads) {
        const std::size_t max = peer_.session().may_send(channel_);
        if (max == 0) {
            if (broken_) peer_.waiting().try_emplace(this, peer_.shared().now() + kBrokenTime);
            return;
        }
        if (reads == kReadsInARow) return peer_.again_later(channel_);
        session::FramePointer& frame = peer_.scratch();
        if (frame == nullptr) frame = std::make_unique<session::Frame>(session::kMaxPayload);
        const std::size_t wanted = std::min(max, peer_.frame_size());
        const ssize_t size = recv(socket_.get(), frame->space().data(), wanted, MSG_DONTWAIT);
        if (size > 0) {
            if (static_cast<std::size_t>(size) < wanted && !peer_closed_) readable_ = false;
            send_on(static_cast<std::size_t>(size));
        } else if (size == 0) {
            read_all_ = true;
            peer_.session().finish(channel_);
            if (broken_) return fail();
            return check_end();
        } else if (errno == EAGAIN) {
            readable_ = false;
        } else if (errno != EINTR) {
            return fail();
        }
    }
}

void Connection::send_on(std::size_t size) {
    session::FramePointer& scratch = peer_.scratch();
    session::FramePointer frame;
    if (size > kWorthCopying) {
        frame = std::move(scratch);
    } else {
        frame = std::make_unique<session::Frame>(size);
        std::memcpy(frame->space().data(), scratch->space().data(), size);
    }
    frame->header.length = static_cast<std::uint32_t>(size);
    peer_.session().send(channel_, std::move(frame));
    peer_.has_work();
}

std::size_t Connection::deliver(Bytes bytes) {
    if (!writable_ || connecting_ || !socket_.valid()) return 0;
    std::size_t done = 0;
    if (!send_what_fits(socket_.get(), bytes, done))
        fail();
    else if (done < bytes.size())
        writable_ = false;
    const Nanoseconds now = peer_.shared().now();
    if (last_write_.value != 0 && now - last_write_ > kIdleTime) ++peer_.shared().counters.lan_idle_restarts;
    last_write_ = now;
    return done;
}

void Connection::finish() {
    finish_wanted_ = true;
    if (connecting_ || !socket_.valid()) return;
    shutdown(socket_.get(), SHUT_WR);
    check_end();
}

void Connection::check_end() {
    if (read_all_ && finish_wanted_ && socket_.valid()) close(false);
}

void Connection::fail() {
    ++peer_.shared().counters.lan_resets;
    peer_.session().reset(channel_);
    peer_.has_work();
    close(true);
}

void Connection::close(bool with_reset) {
    if (!socket_.valid()) return;
    if (const auto info = option_of<tcp_info>(socket_.get(), IPPROTO_TCP, TCP_INFO))
        peer_.shared().counters.lan_retransmissions += info->tcpi_total_retrans;
    if (with_reset)
        close_with_reset(socket_);
    else
        socket_.reset();
    peer_.remove(channel_);
}

void Connection::on_deadline() {
    if (!socket_.valid()) return;
    if (connecting_) ++peer_.shared().counters.targets_failed;
    fail();
}

}  // namespace mcastcoll::gateway
