// What the gateway does: recv into a frame, sendmsg of a batch of them; out of a large buffer again, a send
// for each frame.  And the same with MSG_ZEROCOPY on the stream: a frame is there until the kernel is done
// with it, too, which costs nothing as it is kept anyway.  What is unwrapped is not kept, so it is sent as
// ever.
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
// After time.h, which it needs.
#include <linux/errqueue.h>

#include <cstring>

#include "gateway/ways/kept_frames.h"
#include "gateway/ways/polled.h"

namespace mcastcoll::ways {
namespace {

class PlainWay : public PolledWay {
  public:
    PlainWay(const Settings& settings, bool zero_copy)
        : PolledWay(settings), frames_(settings), zero_copy_(zero_copy) {}

  private:
    Result<void> prepare() override;
    Result<bool> wrap() override;
    Result<bool> unwrap() override;
    Result<void> on_error(Socket& socket) override;
    Result<bool> write();

    KeptFrames frames_;
    Unwrapper unwrapper_;
    const bool zero_copy_;
    bool read_all_ = false, stream_ended_ = false;
    // Calls without a copy that were made, and those that the kernel has done with.
    std::uint32_t calls_ = 0, done_ = 0;
};

Result<void> PlainWay::prepare() {
    const int on = 1;
    if (zero_copy_ && setsockopt(stream_.descriptor, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
        return Error{errno, std::string("SO_ZEROCOPY: ") + std::strerror(errno)};
    return {};
}

Result<bool> PlainWay::wrap() {
    bool moved = false;
    for (unsigned reads = 0; reads < kReadsInARow && connection_.readable && !read_all_ && frames_.has_room();
         ++reads) {
        const auto size = receive(connection_, frames_.space().first(settings_.piece), read_all_);
        if (!size) return size.error();
        if (size.value() == 0) break;
        frames_.add(next_header(size.value()));
        moved = true;
    }
    if (frames_.waiting() && stream_.writable) {
        const auto written = write();
        if (!written) return written;
        moved = moved || written.value();
    }
    // The difference wraps as the numbers do.
    frames_.forget(
        [this](std::uint32_t call) { return !zero_copy_ || static_cast<std::int32_t>(done_ - call) >= 0; });
    if (read_all_ && !frames_.waiting() && done_ == calls_) {
        shutdown(stream_.descriptor, SHUT_WR);
        wrapped_all_ = true;
    }
    return moved || wrapped_all_;
}

Result<bool> PlainWay::write() {
    std::array<iovec, kBatchFrames> pieces;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = frames_.batch(pieces);
    const bool tricky = zero_copy_ && frames_.waiting_bytes() > kWorthCopying;
    const ssize_t size =
        sendmsg(stream_.descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (tricky ? MSG_ZEROCOPY : 0));
    ++counters_.calls;
    if (size < 0) {
        // So much without a copy as this socket may have is under way: its completions will be an edge.
        if (tricky && errno == ENOBUFS) errno = EAGAIN;
        if (auto fine = failed("sendmsg", stream_.writable); !fine) return fine.error();
        return false;
    }
    if (tricky) ++calls_;
    if (static_cast<std::size_t>(size) < frames_.waiting_bytes()) stream_.writable = false;
    frames_.sent(static_cast<std::size_t>(size), calls_);
    return true;
}

Result<void> PlainWay::on_error(Socket& socket) {
    for (;;) {
        char control[128];
        msghdr message{};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t got = recvmsg(socket.descriptor, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
        ++counters_.calls;
        if (got < 0) {
            if (errno == EAGAIN) return {};
            return Error{errno, std::string("error queue: ") + std::strerror(errno)};
        }
        for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
            sock_extended_err about;
            std::memcpy(&about, CMSG_DATA(part), sizeof about);
            if (about.ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
            const std::uint32_t count = about.ee_data - about.ee_info + 1;
            done_ += count;
            counters_.without_copy += count;
            if ((about.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) counters_.copied_all_same += count;
        }
        socket.writable = true;
    }
}

Result<bool> PlainWay::unwrap() {
    bool moved = false;
    for (unsigned reads = 0; reads < kReadsInARow; ++reads) {
        while (connection_.writable) {
            const auto bytes = unwrapper_.next();
            if (!bytes) return bytes.error();
            if (bytes.value().empty()) break;
            const ssize_t size = send(connection_.descriptor, bytes.value().data(), bytes.value().size(),
                                      MSG_NOSIGNAL | MSG_DONTWAIT);
            ++counters_.calls;
            if (size < 0) {
                if (auto fine = failed("send", connection_.writable); !fine) return fine.error();
                break;
            }
            unwrapper_.sent(static_cast<std::size_t>(size));
            moved = true;
        }
        if (!connection_.writable || !stream_.readable || stream_ended_) break;
        const auto size = receive(stream_, unwrapper_.room(), stream_ended_);
        if (!size) return size.error();
        unwrapper_.add(size.value());
        moved = moved || size.value() > 0;
    }
    if (stream_ended_ && unwrapper_.empty()) {
        shutdown(connection_.descriptor, SHUT_WR);
        unwrapped_all_ = true;
    }
    return moved || unwrapped_all_;
}

}  // namespace

std::unique_ptr<Way> make_plain(const Settings& settings) {
    return std::make_unique<PlainWay>(settings, false);
}

std::unique_ptr<Way> make_zero_copy(const Settings& settings) {
    return std::make_unique<PlainWay>(settings, true);
}

}  // namespace mcastcoll::ways
