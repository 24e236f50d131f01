#include "gateway/ways/polled.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>

#include "base/file_descriptor.h"

namespace mcastcoll::ways {

Result<void> PolledWay::run(int connection, int stream) {
    connection_.descriptor = connection;
    stream_.descriptor = stream;
    const FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    for (Socket* socket : {&connection_, &stream_}) {
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
        event.data.ptr = socket;
        if (fcntl(socket->descriptor, F_SETFL, O_NONBLOCK) != 0 ||
            epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket->descriptor, &event) != 0)
            return Error{errno, std::string("epoll: ") + std::strerror(errno)};
    }
    if (auto prepared = prepare(); !prepared) return prepared;
    while (!wrapped_all_ || !unwrapped_all_) {
        bool moved = false;
        if (!wrapped_all_) {
            const auto done = wrap();
            if (!done) return done.error();
            moved = done.value();
        }
        if (!unwrapped_all_) {
            const auto done = unwrap();
            if (!done) return done.error();
            moved = moved || done.value();
        }
        if (moved) continue;
        if (auto waited = wait(epoll.get()); !waited) return waited;
    }
    return {};
}

Result<void> PolledWay::wait(int epoll) {
    epoll_event events[2];
    const int count = epoll_wait(epoll, events, 2, kPatience_ms);
    ++counters_.calls;
    if (count < 0 && errno != EINTR) return Error{errno, std::string("epoll_wait: ") + std::strerror(errno)};
    if (count == 0) return Error{ETIMEDOUT, "nothing moves any more"};
    for (int i = 0; i < count; ++i) {
        Socket& socket = *static_cast<Socket*>(events[i].data.ptr);
        const std::uint32_t what = events[i].events;
        if ((what & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) socket.readable = true;
        if ((what & (EPOLLRDHUP | EPOLLHUP)) != 0) socket.peer_closed = true;
        if ((what & EPOLLOUT) != 0) socket.writable = true;
        if ((what & EPOLLERR) != 0)
            if (auto done = on_error(socket); !done) return done;
    }
    return {};
}

Result<std::size_t> PolledWay::receive(Socket& from, MutableBytes to, bool& ended) {
    const ssize_t size = recv(from.descriptor, to.data(), to.size(), MSG_DONTWAIT);
    ++counters_.calls;
    if (size < 0) {
        if (auto fine = failed("recv", from.readable); !fine) return fine.error();
        return std::size_t{0};
    }
    if (size == 0) ended = true;
    if (static_cast<std::size_t>(size) < to.size() && !from.peer_closed) from.readable = false;
    return static_cast<std::size_t>(size);
}

Result<void> PolledWay::failed(const char* what, bool& ready) {
    if (errno == EAGAIN)
        ready = false;
    else if (errno != EINTR)
        return Error{errno, std::string(what) + ": " + std::strerror(errno)};
    return {};
}

MutableBytes Unwrapper::room() {
    if (head_ == tail_) head_ = tail_ = 0;
    if (bytes_.size() - tail_ < trunk::kHeaderSize + trunk::kMaxPayload) {
        std::memmove(bytes_.data(), bytes_.data() + head_, tail_ - head_);
        tail_ -= head_;
        head_ = 0;
    }
    return MutableBytes(bytes_).subspan(tail_);
}

Result<Bytes> Unwrapper::next() const {
    const Bytes bytes = Bytes(bytes_).subspan(head_, tail_ - head_);
    if (bytes.size() < trunk::kHeaderSize) return Bytes{};
    const auto header = trunk::get_header(bytes);
    if (!header) return Error{EPROTO, "what came is no frame"};
    if (bytes.size() < trunk::kHeaderSize + header->length) return Bytes{};
    return bytes.subspan(trunk::kHeaderSize, header->length).subspan(done_);
}

void Unwrapper::sent(std::size_t size) {
    done_ += size;
    const auto header = trunk::get_header(Bytes(bytes_).subspan(head_, tail_ - head_));
    if (!header || done_ < header->length) return;
    head_ += trunk::kHeaderSize + header->length;
    done_ = 0;
}

}  // namespace mcastcoll::ways
