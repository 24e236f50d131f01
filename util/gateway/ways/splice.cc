// Through a pipe: pages go from one socket to the other without being copied.  The length must be in the
// header, so a piece is in the pipe before its header is sent.  What must be kept is tee'd into a second pipe
// that holds the same pages; what is acknowledged goes from there to /dev/null.
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file_descriptor.h"
#include "gateway/ways/polled.h"

namespace mcastcoll::ways {
namespace {

// What a process without special rights may have (fs.pipe-max-size): 256 pages, or parts of pages.
constexpr int kPipeSize = 1 << 20;
constexpr unsigned kSpliceFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

struct Pipe {
    FileDescriptor read, write;

    Result<void> open() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
            return Error{errno, std::string("pipe: ") + std::strerror(errno)};
        read = FileDescriptor(ends[0]);
        write = FileDescriptor(ends[1]);
        if (fcntl(write.get(), F_SETPIPE_SZ, kPipeSize) < 0)
            return Error{errno, std::string("F_SETPIPE_SZ: ") + std::strerror(errno)};
        return {};
    }
};

class SpliceWay : public PolledWay {
  public:
    SpliceWay(const Settings& settings, bool keep) : PolledWay(settings), keep_(keep) {}

  private:
    Result<void> prepare() override;
    Result<bool> wrap() override;
    Result<bool> unwrap() override;
    Result<bool> wrap_piece();
    Result<bool> fill();
    Result<bool> send_header();
    Result<void> keep_piece();
    Result<void> forget(std::size_t bytes);
    Result<std::size_t> move(int from, int to, std::size_t size, bool& ready);
    Result<bool> unwrap_piece();

    Pipe out_, kept_, in_;
    FileDescriptor nowhere_;
    const bool keep_;
    bool read_all_ = false, stream_ended_ = false;

    std::array<std::byte, trunk::kHeaderSize> header_out_{}, header_in_{};
    std::size_t header_left_ = 0, header_got_ = 0;
    std::size_t piece_left_ = 0;                // of the piece that is in the pipe
    std::size_t piece_kept_ = 0;                // of that, what is in the second pipe as well
    std::size_t kept_bytes_ = 0;                // in the second pipe
    std::size_t frame_left_ = 0, in_pipe_ = 0;  // of the frame that comes in; of that, what is in the pipe
};

Result<void> SpliceWay::prepare() {
    for (Pipe* pipe : {&out_, &kept_, &in_})
        if (auto opened = pipe->open(); !opened) return opened;
    nowhere_ = FileDescriptor(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!nowhere_.valid()) return Error{errno, std::string("/dev/null: ") + std::strerror(errno)};
    return {};
}

// 0 if nothing could be moved now, or at the end of `from`, which is told apart by `ready`.
Result<std::size_t> SpliceWay::move(int from, int to, std::size_t size, bool& ready) {
    ssize_t moved = -1;
    do {
        moved = splice(from, nullptr, to, nullptr, size, kSpliceFlags);
        ++counters_.calls;
    } while (moved < 0 && errno == EINTR);
    if (moved >= 0) return static_cast<std::size_t>(moved);
    if (auto fine = failed("splice", ready); !fine) return fine.error();
    return std::size_t{0};
}

Result<bool> SpliceWay::wrap() {
    bool moved = false;
    for (unsigned pieces = 0; pieces < kReadsInARow && !wrapped_all_; ++pieces) {
        const auto done = wrap_piece();
        if (!done) return done;
        if (!done.value()) break;
        moved = true;
    }
    return moved;
}

Result<bool> SpliceWay::wrap_piece() {
    bool moved = false;
    if (piece_left_ == 0) {
        const auto filled = fill();
        if (!filled || !filled.value()) return filled;
        if (wrapped_all_) return true;
        moved = true;
    }
    if (const auto sent = send_header(); !sent || !sent.value()) return sent ? Result<bool>(moved) : sent;
    while (piece_left_ > 0 && stream_.writable) {
        if (keep_ && piece_kept_ == 0)
            if (auto kept = keep_piece(); !kept) return kept.error();
        const auto size =
            move(out_.read.get(), stream_.descriptor, keep_ ? piece_kept_ : piece_left_, stream_.writable);
        if (!size) return size.error();
        piece_left_ -= size.value();
        if (keep_) piece_kept_ -= size.value();
        moved = moved || size.value() > 0;
    }
    return moved;
}

// Gets the next piece into the pipe, and makes its header.
Result<bool> SpliceWay::fill() {
    if (!connection_.readable) return false;
    const auto size = move(connection_.descriptor, out_.write.get(), settings_.piece, connection_.readable);
    if (!size) return size.error();
    if (size.value() == 0) {
        if (!connection_.readable) return false;
        shutdown(stream_.descriptor, SHUT_WR);
        wrapped_all_ = true;
        return true;
    }
    piece_left_ = size.value();
    piece_kept_ = 0;
    trunk::put_header(header_out_.data(), next_header(piece_left_));
    header_left_ = header_out_.size();
    return true;
}

// True once it is away.
Result<bool> SpliceWay::send_header() {
    while (header_left_ > 0) {
        if (!stream_.writable) return false;
        const ssize_t size =
            send(stream_.descriptor, header_out_.data() + (header_out_.size() - header_left_), header_left_,
                 MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
        ++counters_.calls;
        if (size >= 0)
            header_left_ -= static_cast<std::size_t>(size);
        else if (auto fine = failed("send", stream_.writable); !fine)
            return fine.error();
    }
    return true;
}

// The second pipe gets as much as it has room for; the oldest there is given up as if it were acknowledged.
Result<void> SpliceWay::keep_piece() {
    if (kept_bytes_ > settings_.kept)
        if (auto done = forget(kept_bytes_ - settings_.kept); !done) return done;
    for (;;) {
        const ssize_t size = tee(out_.read.get(), kept_.write.get(), piece_left_, SPLICE_F_NONBLOCK);
        ++counters_.calls;
        if (size > 0) {
            piece_kept_ = static_cast<std::size_t>(size);
            kept_bytes_ += piece_kept_;
            return {};
        }
        if (size < 0 && errno != EAGAIN && errno != EINTR)
            return Error{errno, std::string("tee: ") + std::strerror(errno)};
        if (kept_bytes_ == 0) return Error{EIO, "tee: the pipe is empty and takes nothing"};
        if (auto done = forget(std::min(kept_bytes_, settings_.piece)); !done) return done;
    }
}

Result<void> SpliceWay::forget(std::size_t bytes) {
    while (bytes > 0) {
        bool ready = true;
        const auto size = move(kept_.read.get(), nowhere_.get(), bytes, ready);
        if (!size) return size.error();
        if (size.value() == 0) return Error{EIO, "the pipe of what is kept has lost something"};
        bytes -= size.value();
        kept_bytes_ -= size.value();
    }
    return {};
}

Result<bool> SpliceWay::unwrap() {
    bool moved = false;
    for (unsigned pieces = 0; pieces < kReadsInARow && !unwrapped_all_; ++pieces) {
        const auto done = unwrap_piece();
        if (!done) return done;
        if (!done.value()) break;
        moved = true;
    }
    return moved;
}

Result<bool> SpliceWay::unwrap_piece() {
    bool moved = false;
    if (frame_left_ == 0) {
        if (!stream_.readable) return false;
        const auto size = receive(stream_, MutableBytes(header_in_).subspan(header_got_), stream_ended_);
        if (!size) return size.error();
        if (stream_ended_) {
            shutdown(connection_.descriptor, SHUT_WR);
            unwrapped_all_ = true;
            return true;
        }
        header_got_ += size.value();
        if (header_got_ < header_in_.size()) return size.value() > 0;
        const auto header = trunk::get_header(header_in_);
        if (!header) return Error{EPROTO, "what came is no frame"};
        frame_left_ = header->length;
        header_got_ = 0;
        moved = true;
    }
    while (frame_left_ > 0) {
        if (in_pipe_ < frame_left_ && stream_.readable) {
            const auto size =
                move(stream_.descriptor, in_.write.get(), frame_left_ - in_pipe_, stream_.readable);
            if (!size) return size.error();
            if (size.value() == 0 && stream_.readable) return Error{EPROTO, "the stream ended in a frame"};
            in_pipe_ += size.value();
        }
        if (in_pipe_ == 0 || !connection_.writable) break;
        const auto size = move(in_.read.get(), connection_.descriptor, in_pipe_, connection_.writable);
        if (!size) return size.error();
        in_pipe_ -= size.value();
        frame_left_ -= size.value();
        moved = moved || size.value() > 0;
    }
    return moved;
}

}  // namespace

std::unique_ptr<Way> make_splice(const Settings& settings, bool keep) {
    return std::make_unique<SpliceWay>(settings, keep);
}

}  // namespace mcastcoll::ways
