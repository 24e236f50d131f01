// io_uring, one thread: a receive and a send of each direction are under way at once, and one call submits
// what is to be done and waits for what is done.  Its second kind has frames in registered memory: reads into
// it, and sends from it without a copy where the kernel can.
#include <errno.h>
#include <fmt/format.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>

#include "gateway/ways/kept_frames.h"

namespace mcastcoll::ways {
namespace {

constexpr unsigned kEntries = 256;
// Of kernel 6.2, newer than some liburing.
constexpr unsigned kReportUsage = 1U << 3, kUsageCopied = 1U << 31;
constexpr unsigned kFlags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
enum class Done : std::uint64_t { receive_out = 1, send_out, receive_in, send_in };

class Ring {
  public:
    Ring() = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() {
        if (open_) io_uring_queue_exit(&ring_);
    }
    // 0, or what is wrong.
    int open() {
        const int code = io_uring_queue_init(kEntries, &ring_, kFlags);
        open_ = code == 0;
        return -code;
    }
    io_uring* get() { return &ring_; }

  private:
    io_uring ring_{};
    bool open_ = false;
};

class UringWay : public Way {
  public:
    explicit UringWay(const Settings& settings) : Way(settings), frames_(settings) {}
    Result<void> run(int connection, int stream) final;

  protected:
    virtual Result<void> prepare() { return {}; }
    // Towards the stream: what there is to do now, and what is done.
    virtual void start_out();
    virtual void received_out(std::size_t size) { frames_.add(next_header(size)); }
    virtual void sent_out(const io_uring_cqe& done);
    virtual bool sent_all() const { return !sending_out_ && !frames_.waiting(); }

    // A request; its number comes back in user_data, above what it is.
    io_uring_sqe* next(Done what, std::uint64_t number = 0) {
        io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
        io_uring_sqe_set_data64(entry, number << 8 | static_cast<std::uint64_t>(what));
        ++under_way_;
        return entry;
    }

    Ring ring_;
    int connection_ = -1, stream_ = -1;
    bool receiving_out_ = false, sending_out_ = false, read_all_ = false;
    unsigned under_way_ = 0;

  private:
    void start_in();
    Result<void> finished(const io_uring_cqe& done);
    void check_ends();

    KeptFrames frames_;
    std::array<iovec, kBatchFrames> pieces_;
    msghdr message_{};

    std::vector<std::byte> arrived_ = std::vector<std::byte>(kReceiveBuffer);
    std::size_t head_ = 0, tail_ = 0;  // frames that wait or are being sent, and what has come beyond
    std::size_t sent_ = 0;             // up to here their payloads are asked to be sent
    unsigned sends_in_ = 0;
    bool receiving_in_ = false, stream_ended_ = false;
    bool wrapped_all_ = false, unwrapped_all_ = false, broken_ = false;
};

Result<void> UringWay::run(int connection, int stream) {
    connection_ = connection;
    stream_ = stream;
    if (const int code = ring_.open(); code != 0)
        return Error{code, std::string("io_uring: ") + std::strerror(code)};
    if (auto prepared = prepare(); !prepared) return prepared;
    Result<void> result;
    while (result.ok() && !(wrapped_all_ && unwrapped_all_ && under_way_ == 0)) {
        if (!wrapped_all_) start_out();
        if (!unwrapped_all_) start_in();
        if (broken_) return Error{EPROTO, "what came is no frame"};
        if (under_way_ > 0) {
            __kernel_timespec patience{kPatience_ms / 1000, 0};
            io_uring_cqe* first = nullptr;
            const int code = io_uring_submit_and_wait_timeout(ring_.get(), &first, 1, &patience, nullptr);
            ++counters_.calls;
            if (code < 0 && code != -EINTR)
                return Error{-code, std::string("io_uring_enter: ") + std::strerror(-code)};
        }
        unsigned head = 0, count = 0;
        io_uring_cqe* done = nullptr;
        io_uring_for_each_cqe(ring_.get(), head, done) {
            ++count;
            if (result.ok()) result = finished(*done);
        }
        io_uring_cq_advance(ring_.get(), count);
        check_ends();
    }
    return result;
}

Result<void> UringWay::finished(const io_uring_cqe& done) {
    const auto what = static_cast<Done>(done.user_data & 0xff);
    if ((done.flags & IORING_CQE_F_MORE) == 0) --under_way_;
    if (done.res < 0 && (done.flags & IORING_CQE_F_NOTIF) == 0)
        return Error{-done.res, fmt::format("io_uring: request {}: {}", done.user_data & 0xff,
                                            std::strerror(-done.res))};
    const auto size = static_cast<std::size_t>(done.res);
    switch (what) {
        case Done::receive_out:
            receiving_out_ = false;
            if (size == 0)
                read_all_ = true;
            else
                received_out(size);
            break;
        case Done::send_out:
            sent_out(done);
            break;
        case Done::receive_in:
            receiving_in_ = false;
            tail_ += size;
            if (size == 0) stream_ended_ = true;
            break;
        case Done::send_in:
            sends_in_ = 0;
            break;
    }
    return {};
}

void UringWay::check_ends() {
    if (!wrapped_all_ && read_all_ && sent_all()) {
        shutdown(stream_, SHUT_WR);
        wrapped_all_ = true;
    }
    if (!unwrapped_all_ && stream_ended_ && sends_in_ == 0 && sent_ == tail_) {
        shutdown(connection_, SHUT_WR);
        unwrapped_all_ = true;
    }
}

void UringWay::start_out() {
    if (!receiving_out_ && !read_all_ && frames_.has_room()) {
        io_uring_prep_recv(next(Done::receive_out), connection_, frames_.space().data(), settings_.piece, 0);
        receiving_out_ = true;
    }
    if (!sending_out_ && frames_.waiting()) {
        message_.msg_iov = pieces_.data();
        message_.msg_iovlen = frames_.batch(pieces_);
        io_uring_prep_sendmsg(next(Done::send_out), stream_, &message_, MSG_NOSIGNAL | MSG_WAITALL);
        sending_out_ = true;
    }
}

void UringWay::sent_out(const io_uring_cqe& done) {
    frames_.sent(static_cast<std::size_t>(done.res));
    frames_.forget([](std::uint32_t) { return true; });
    sending_out_ = false;
}

// Out of the stream: all frames that are there are sent on by one chain of requests, of which the last says
// that it is done, while more comes behind them.
void UringWay::start_in() {
    if (sends_in_ == 0) {
        head_ = sent_;
        if (head_ == tail_ && !receiving_in_) head_ = sent_ = tail_ = 0;
        io_uring_sqe* last = nullptr;
        while (sends_in_ < kBatchFrames) {
            const Bytes bytes = Bytes(arrived_).subspan(sent_, tail_ - sent_);
            if (bytes.size() < trunk::kHeaderSize) break;
            const auto header = trunk::get_header(bytes);
            broken_ = broken_ || !header;
            if (!header || bytes.size() < trunk::kHeaderSize + header->length) break;
            if (last != nullptr) {
                last->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
                --under_way_;
            }
            last = next(Done::send_in);
            io_uring_prep_send(last, connection_, bytes.data() + trunk::kHeaderSize, header->length,
                               MSG_NOSIGNAL | MSG_WAITALL);
            sent_ += trunk::kHeaderSize + header->length;
            ++sends_in_;
        }
    }
    if (receiving_in_ || stream_ended_) return;
    if (arrived_.size() - tail_ < trunk::kHeaderSize + trunk::kMaxPayload) {
        if (sends_in_ > 0) return;
        std::memmove(arrived_.data(), arrived_.data() + head_, tail_ - head_);
        tail_ -= head_;
        sent_ -= head_;
        head_ = 0;
    }
    io_uring_prep_recv(next(Done::receive_in), stream_, arrived_.data() + tail_, arrived_.size() - tail_, 0);
    receiving_in_ = true;
}

// Frames have places in a ring of registered memory: the oldest's is used again once it is sent, and the
// kernel has done with it, and so many others came after it that it is acknowledged.
class UringZeroCopyWay final : public UringWay {
  public:
    explicit UringZeroCopyWay(const Settings& settings)
        : UringWay(settings), places_(settings.kept / kPlace + kBatchFrames), frames_(places_) {}
    ~UringZeroCopyWay() override {
        if (memory_ != nullptr) munmap(memory_, places_ * kPlace);
    }

  private:
    static constexpr std::size_t kPlace = 68 * 1024;
    static_assert(kPlace >= trunk::kHeaderSize + trunk::kMaxPayload);

    Result<void> prepare() override;
    void start_out() override;
    void received_out(std::size_t size) override;
    void sent_out(const io_uring_cqe& done) override;
    bool sent_all() const override { return freed_ == received_; }

    std::byte* place(std::uint64_t number) const { return memory_ + number % places_ * kPlace; }

    const std::size_t places_;
    struct Place {
        std::size_t length = 0;
        bool done = false;  // sent, and nothing in the kernel refers to it any more
    };
    std::vector<Place> frames_;
    std::byte* memory_ = nullptr;
    // Numbers of frames: received, asked to be sent, sent, and all before it done with.
    std::uint64_t received_ = 0, asked_ = 0, sent_ = 0, freed_ = 0;
};

Result<void> UringZeroCopyWay::prepare() {
    void* memory = mmap(nullptr, places_ * kPlace, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return Error{errno, std::string("mmap: ") + std::strerror(errno)};
    memory_ = static_cast<std::byte*>(memory);
    const iovec all{memory, places_ * kPlace};
    if (const int code = io_uring_register_buffers(ring_.get(), &all, 1); code != 0)
        return Error{-code, std::string("io_uring_register_buffers: ") + std::strerror(-code)};
    return {};
}

void UringZeroCopyWay::start_out() {
    if (!receiving_out_ && !read_all_ && received_ - freed_ < places_ && received_ - sent_ < kBatchFrames) {
        io_uring_prep_read_fixed(next(Done::receive_out), connection_, place(received_) + trunk::kHeaderSize,
                                 static_cast<unsigned>(settings_.piece), 0, 0);
        receiving_out_ = true;
    }
    if (sent_ != asked_) return;
    io_uring_sqe* last = nullptr;
    for (; asked_ != received_; ++asked_) {
        if (last != nullptr) last->flags |= IOSQE_IO_LINK;
        last = next(Done::send_out, asked_);
        const std::size_t length = frames_[asked_ % places_].length;
        if (length > kWorthCopying)
            io_uring_prep_send_zc_fixed(last, stream_, place(asked_), length, MSG_NOSIGNAL | MSG_WAITALL,
                                        kReportUsage, 0);
        else
            io_uring_prep_send(last, stream_, place(asked_), length, MSG_NOSIGNAL | MSG_WAITALL);
    }
}

void UringZeroCopyWay::received_out(std::size_t size) {
    trunk::put_header(place(received_), next_header(size));
    frames_[received_ % places_] = {trunk::kHeaderSize + size, false};
    ++received_;
}

// A send without a copy completes twice: when it is sent, and when the kernel needs the memory no longer.
void UringZeroCopyWay::sent_out(const io_uring_cqe& done) {
    if ((done.flags & IORING_CQE_F_NOTIF) == 0) {
        ++sent_;
    } else {
        ++counters_.without_copy;
        if ((static_cast<unsigned>(done.res) & kUsageCopied) != 0) ++counters_.copied_all_same;
    }
    if ((done.flags & IORING_CQE_F_MORE) != 0) return;
    frames_[(done.user_data >> 8) % places_].done = true;
    while (freed_ != sent_ && frames_[freed_ % places_].done) ++freed_;
}

}  // namespace

std::unique_ptr<Way> make_uring(const Settings& settings) {
    return std::make_unique<UringWay>(settings);
}

std::unique_ptr<Way> make_uring_zero_copy(const Settings& settings) {
    return std::make_unique<UringZeroCopyWay>(settings);
}

bool uring_works() {
    Ring ring;
    if (ring.open() != 0) return false;
    io_uring_probe* probe = io_uring_get_probe_ring(ring.get());
    if (probe == nullptr) return false;
    const bool works = io_uring_opcode_supported(probe, IORING_OP_SEND_ZC) != 0;
    io_uring_free_probe(probe);
    return works;
}

}  // namespace mcastcoll::ways
