// The life of a stream: hello and welcome (its first messages, session/hello.h), and its input and output.
#include "gateway/link.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::size_t kReceiveBuffer = 512 * 1024;
constexpr std::size_t kLargestFrame = session::kHeaderSize + session::kMaxPayload;
constexpr std::size_t kBatch = 256 * 1024;
constexpr std::size_t kBatchFrames = 64;
constexpr std::size_t kSealedBatch = 64 * 1024;  // bytes encrypted at once: these frames cannot be given back
static_assert(kReceiveBuffer >= 2 * kLargestFrame);
constexpr const char* kNoFrame = "it sent invalid data instead of a frame";

// The bytes in a socket's send queue: unsent or unacknowledged.
int queued_in(int descriptor) {
    int bytes = 0;
    return ioctl(descriptor, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace

Link::Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
           const session::Hello& hello, std::unique_ptr<Tls> tls, bool connecting)
    : owner_(owner),
      shared_(shared),
      session_(session),
      stream_(hello.stream),
      socket_(std::move(socket)),
      state_(connecting ? State::connecting : State::welcome),
      readable_(!connecting),
      writable_(!connecting),
      deadline_(shared.now() + kHelloTime),
      hello_(hello),
      tls_(std::move(tls)) {
    const int descriptor = socket_.get();
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(StreamRoom::kMaxUnsent));
    // The kernel paces a socket that has a limit, at a rate of its own choice, so that a window is not sent
    // at once after a pause. This limit is too high to be reached.
    set_option(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, std::uint64_t{1} << 40);
    const Nanoseconds silence = shared_.settings.silence;
    set_option(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.value / 1'000'000));
    // An error is ignored, since the gateway has checked at its start that the kernel has this congestion
    // control.
    const std::string& congestion = shared_.settings.sites.sessions.congestion;
    if (!congestion.empty()) (void)set_congestion(descriptor, congestion).ok();
}

Link::Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
           const session::Hello& hello)
    : Link(owner, shared, session, std::move(socket), hello, nullptr, true) {
    if (shared.tls != nullptr) tls_ = std::make_unique<Tls>(*shared.tls, socket_.get(), hello.to);
}

Link::Link(LinkOwner& owner, Shared& shared, session::Session& session, FileDescriptor socket,
           const session::Hello& hello, std::unique_ptr<Tls> tls)
    : Link(owner, shared, session, std::move(socket), hello, std::move(tls), false) {}

// Sends a hello or a welcome, which fits into the buffer of a new connection unless the connection is faulty.
bool Link::put(Bytes bytes) {
    std::size_t sent = 0;
    if (tls_ != nullptr ? tls_->write(bytes) && tls_->flush()
                        : send_what_fits(socket_.get(), bytes, sent) && sent == bytes.size())
        return true;
    close("it does not accept the hello");
    return false;
}

void Link::connected() {
    if (option_of<int>(socket_.get(), SOL_SOCKET, SO_ERROR) != 0) return close("cannot connect");
    state_ = State::handshake;
    writable_ = true;
    shake_hands();
}

// Does the connector's part of the TLS handshake; PendingConnection does the acceptor's part.
void Link::shake_hands() {
    const Tls::Progress progress = tls_ == nullptr ? Tls::Progress::done : tls_->shake_hands();
    if (tls_ != nullptr && !tls_->flush()) return close("it does not accept the hello");
    readable_ = false;
    switch (progress) {
        case Tls::Progress::waiting:
            return;
        case Tls::Progress::closed:
            return close(tls_->failure() + ", without TLS: check that it has a key");
        case Tls::Progress::failed:
            shared_.warn(fmt::format("no TLS with the gateway of {}: {} (check that it has the same key)",
                                     hello_.to, tls_->failure()));
            refuse(shared_.counters.wrong_keys, "TLS: " + tls_->failure());
            return;
        case Tls::Progress::done:
            break;
    }
    state_ = State::welcome;
    put(encode_hello(hello_));
    readable_ = true;
}

void Link::welcome(const session::Welcome& answer) {
    session::Frame frame({session::FrameType::welcome, 0, 0, 0, 0}, encode_welcome(answer));
    frame.seal();
    if (!put(frame.bytes())) return;
    if (answer.peer_session == 0) return close("its session differs from the session here");
    come_up(hello_.window);
}

bool Link::on_welcome(const session::FrameHeader& header, Bytes payload) {
    if (header.type != session::FrameType::welcome)
        return refuse(shared_.counters.garbage, "it does not begin with a welcome");
    const session::Welcome welcome = session::decode_welcome(payload);
    if (!owner_.welcomed(*this, welcome)) {
        close("its session differs from the session here");
        return false;
    }
    come_up(welcome.window);
    return true;
}

void Link::come_up(std::uint32_t window) {
    state_ = State::up;
    deadline_ = kNever;
    owner_.link_up(*this, window);
}

void Link::on_events(std::uint32_t events) {
    if (state_ == State::closed) return;
    if (state_ == State::connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) connected();
    if ((events & EPOLLOUT) != 0) writable_ = true;
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
    readable_ = true;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) peer_closed_ = true;
    if (state_ == State::handshake) return shake_hands();
    if (state_ != State::closed && state_ != State::connecting) read();
}

void Link::read() {
    if (received_.empty()) received_.resize(kReceiveBuffer);
    for (unsigned reads = 0; reads < kReadsInARow && readable_; ++reads) {
        if (received_.size() - tail_ < kLargestFrame) {
            std::memmove(received_.data(), received_.data() + head_, tail_ - head_);
            tail_ -= head_;
            head_ = 0;
        }
        const MutableBytes room = MutableBytes(received_).subspan(tail_);
        const auto size = tls_ != nullptr ? take_by_tls(room) : take(room);
        if (!size) return;
        if (*size == 0) continue;
        tail_ += *size;
        if (is_up()) session_.note_input(stream_, shared_.now());
        if (!parse()) return;
    }
}

// Returns the number of bytes read, 0 if none are available; nothing if the link is closed.
std::optional<std::size_t> Link::take(MutableBytes room) {
    const ssize_t size = recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (size > 0) {
        counters_.received += static_cast<std::uint64_t>(size);
        // A short read: the kernel reports further input. But an end already reported is not reported again.
        if (static_cast<std::size_t>(size) < room.size() && !peer_closed_) readable_ = false;
        return static_cast<std::size_t>(size);
    }
    if (size < 0 && errno == EAGAIN) readable_ = false;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    close(size == 0 ? "the peer has closed it" : std::strerror(errno));
    return std::nullopt;
}

std::optional<std::size_t> Link::take_by_tls(MutableBytes room) {
    const Tls::Taken taken = tls_->read(room, peer_closed_);
    counters_.received = tls_->received();
    // Input before the end goes to the session first; the next read returns the end again.
    if (taken.size > 0 && taken.progress != Tls::Progress::waiting) return taken.size;
    switch (taken.progress) {
        case Tls::Progress::done:
            break;
        case Tls::Progress::waiting:
            readable_ = false;
            break;
        case Tls::Progress::closed:
            close(tls_->failure());
            return std::nullopt;
        case Tls::Progress::failed:
            refuse(shared_.counters.forged_records, "a record was forged or damaged: " + tls_->failure());
            return std::nullopt;
    }
    return taken.size;
}

// Returns false if the link is closed.
bool Link::parse() {
    while (arrived().size() >= session::kHeaderSize) {
        const Bytes bytes = arrived();
        const auto header = session::get_header(bytes);
        if (!header) return refuse(shared_.counters.garbage, kNoFrame);
        const std::size_t size = session::kHeaderSize + header->length;
        if (bytes.size() < size) break;
        head_ += size;
        if (!on_frame(*header, bytes.subspan(session::kHeaderSize, header->length))) return false;
    }
    if (head_ == tail_) head_ = tail_ = 0;
    return true;
}

bool Link::on_frame(const session::FrameHeader& header, Bytes payload) {
    if (state_ == State::welcome) return on_welcome(header, payload);
    const auto done = session_.on_frame(stream_, header, payload, shared_.now());
    if (!done) owner_.violated(done.error().message);
    return done.ok();
}

bool Link::write(Nanoseconds now, std::size_t max) {
    if (!can_write()) return false;
    // The kernel's criterion for an idle connection: no bytes in flight, and none sent for a retransmission
    // timeout.
    const Nanoseconds timeout = Nanoseconds::from_us(room_.info() ? room_.info()->tcpi_rto : 200'000);
    idle_ = last_write_.value != 0 && now - last_write_ > timeout && queued_in(socket_.get()) == 0;
    return tls_ != nullptr ? write_by_tls(now, max) : write_plain(now, max);
}

bool Link::write_plain(Nanoseconds now, std::size_t max) {
    const auto& writing = session_.stream(stream_).writing();
    for (std::size_t bytes = unsent(); writing.size() < kBatchFrames && bytes < std::min(max, kBatch);) {
        const session::Frame* frame = session_.next(stream_, now);
        if (frame == nullptr) break;
        bytes += frame->bytes().size();
    }
    if (writing.empty()) return false;
    std::array<iovec, kBatchFrames> pieces;
    std::size_t count = 0, offset = first_sent_;
    for (const session::FramePointer& frame : writing) {
        const Bytes bytes = frame->bytes().subspan(offset);
        pieces[count++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
        offset = 0;
    }
    const auto sent = send_pieces({pieces.data(), count}, now, max);
    if (sent) {
        first_sent_ += *sent;
        std::size_t frames = 0;
        for (; frames < count && first_sent_ >= writing[frames]->bytes().size(); ++frames)
            first_sent_ -= writing[frames]->bytes().size();
        session_.written(stream_, frames);
        if (!writing.empty()) writable_ = false;  // a short write: the kernel reports when there is room
    }
    if (!writable_) {  // frames that do not fit may go sooner on another stream
        const std::size_t begun = first_sent_ > 0 ? 1 : 0;
        session_.give_back(stream_, writing.size() - begun);
    }
    return sent && writable_;
}

std::size_t Link::unsent() const {
    std::size_t bytes = tls_ == nullptr ? 0 : tls_->outgoing().size() - records_sent_;
    bytes -= first_sent_;
    for (const session::FramePointer& frame : session_.stream(stream_).writing())
        bytes += frame->bytes().size();
    return bytes;
}

// Records are copies: frames count as written once encrypted, and the session keeps them until they are
// acknowledged.
bool Link::write_by_tls(Nanoseconds now, std::size_t max) {
    std::vector<std::byte>& records = tls_->outgoing();
    if (records_sent_ == records.size()) {
        records.clear();
        records_sent_ = 0;
        while (records.size() < std::min(max, kSealedBatch)) {
            const session::Frame* frame = session_.next(stream_, now);
            if (frame == nullptr) break;
            if (!tls_->write(frame->bytes())) {
                close("TLS: " + tls_->failure());
                return false;
            }
            session_.written(stream_, 1);
        }
    }
    if (records.empty()) return false;
    iovec piece{records.data() + records_sent_, records.size() - records_sent_};
    const auto sent = send_pieces({&piece, 1}, now, max);
    if (!sent) return false;
    records_sent_ += *sent;
    if (records_sent_ < records.size()) writable_ = false;
    return writable_;
}

// Returns the number of bytes sent; nothing if the socket accepts none.
std::optional<std::size_t> Link::send_pieces(std::span<iovec> pieces, Nanoseconds now, std::size_t max) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    // The kernel appends to a pending buffer of up to 64 KiB, whatever the limit of unsent bytes; MSG_EOR
    // ends the buffer.
    const int ending = max < session::kMaxPayload ? MSG_EOR : 0;
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT | ending);
    if (sent < 0) {
        if (errno == EAGAIN)
            writable_ = false;
        else if (errno != EINTR)
            close(std::strerror(errno));
        return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(sent);
    counters_.sent += size;
    room_.note_sent(size);
    if (std::exchange(idle_, false)) ++counters_.idle_restarts;
    last_write_ = now;
    return size;
}

bool Link::refuse(std::uint64_t& counter, const std::string& why) {
    ++counter;
    close(why);
    return false;
}

void Link::close(const std::string& why) {
    if (state_ == State::closed) return;
    const bool was_up = state_ == State::up;
    state_ = State::closed;
    socket_.reset();
    owner_.link_closed(*this, was_up, why);
}

}  // namespace mcastcoll::gateway
