#include "gateway/ways/traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace mcastcoll::ways {
namespace {

Error system_error(const std::string& what) {
    return Error{errno, what + ": " + std::strerror(errno)};
}

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s(int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What this byte of the whole is when every byte is looked at.
std::byte byte_at(std::uint64_t offset) {
    return static_cast<std::byte>((offset * 0x9e3779b97f4a7c15ULL) >> 56);
}

bool send_all(int socket, Bytes bytes) {
    while (!bytes.empty()) {
        const ssize_t size = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(size));
    }
    return true;
}

// All of it; less at the end, or after an error.
std::size_t receive_all(int socket, MutableBytes bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t size = recv(socket, bytes.data() + done, bytes.size() - done, MSG_WAITALL);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) break;
        done += static_cast<std::size_t>(size);
    }
    return done;
}

// Reads on to the end without copying anything out of the kernel; gives how much it was.
Result<std::uint64_t> discard_all(int socket) {
    constexpr std::size_t kMost = 1 << 20;
    const auto untouched = std::make_unique_for_overwrite<std::byte[]>(kMost);
    std::uint64_t total = 0;
    for (;;) {
        const ssize_t size = recv(socket, untouched.get(), kMost, MSG_TRUNC);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return system_error("recv");
        if (size == 0) return total;
        total += static_cast<std::uint64_t>(size);
    }
}

void append_frame(std::vector<std::byte>& to, std::uint64_t number, std::size_t length) {
    const std::size_t at = to.size();
    to.resize(at + trunk::kHeaderSize + length);
    trunk::put_header(to.data() + at, {trunk::FrameType::data, static_cast<std::uint32_t>(length), 1,
                                       static_cast<std::uint32_t>(number), number});
}

// The relay in a thread of its own, with what it took.
class Relay {
  public:
    Relay(Way& way, const Line& line, const Settings& settings)
        : thread_([this, &way, &line, processor = settings.processor] {
              if (processor >= 0) result_ = stay_on(processor);
              const double before = cpu_s(RUSAGE_THREAD);
              if (result_) result_ = way.run(line.connection.get(), line.stream.get());
              cpu_s_ = cpu_s(RUSAGE_THREAD) - before;
              if (result_) return;
              // Nobody may wait for a relay that has given up.
              shutdown(line.connection.get(), SHUT_RDWR);
              shutdown(line.stream.get(), SHUT_RDWR);
          }) {}
    Result<void> join() {
        thread_.join();
        return result_;
    }
    double cpu() const { return cpu_s_; }

  private:
    Result<void> result_;
    double cpu_s_ = 0;
    std::thread thread_;
};

std::uint64_t send_for(int socket, Bytes block, double seconds) {
    const double end = now_s() + seconds;
    std::uint64_t sent = 0;
    while (now_s() < end && send_all(socket, block)) sent += block.size();
    shutdown(socket, SHUT_WR);
    return sent;
}

// Takes the pieces' sizes in turn, from 1 byte up to `most`.
class Sizes {
  public:
    explicit Sizes(std::size_t most) : most_(most) {}
    std::size_t next() {
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        // As many small ones as large ones.
        const std::size_t most = std::max<std::size_t>(1, most_ >> (state_ >> 60));
        return 1 + (state_ >> 33) % most;
    }

  private:
    const std::size_t most_;
    std::uint64_t state_ = 1;
};

void send_pattern(int socket, Direction direction, std::size_t bytes, const Settings& settings) {
    Sizes sizes(direction == Direction::out ? 300'000 : settings.piece);
    std::vector<std::byte> block;
    std::uint64_t number = 0;
    for (std::size_t at = 0; at < bytes;) {
        const std::size_t size = std::min(sizes.next(), bytes - at);
        block.clear();
        if (direction == Direction::in)
            append_frame(block, ++number, size);
        else
            block.resize(size);
        std::byte* to = block.data() + (block.size() - size);
        for (std::size_t i = 0; i < size; ++i) to[i] = byte_at(at + i);
        at += size;
        if (!send_all(socket, block)) break;
    }
    shutdown(socket, SHUT_WR);
}

Result<void> receive_pattern(int socket, Direction direction, std::size_t bytes, const Settings& settings) {
    std::vector<std::byte> block(trunk::kMaxPayload);
    std::array<std::byte, trunk::kHeaderSize> head;
    std::uint64_t number = 0;
    std::size_t at = 0;
    for (;;) {
        std::size_t wanted = block.size();
        if (direction == Direction::out) {
            const std::size_t got = receive_all(socket, head);
            if (got == 0) break;
            const auto header = trunk::get_header(head);
            if (got < head.size() || !header || header->sequence != ++number ||
                header->length > settings.piece)
                return Error{EPROTO, fmt::format("a wrong header after {} bytes", at)};
            wanted = header->length;
        }
        const std::size_t got = receive_all(socket, MutableBytes(block).first(wanted));
        for (std::size_t i = 0; i < got; ++i)
            if (block[i] != byte_at(at + i)) return Error{EPROTO, fmt::format("byte {} is wrong", at + i)};
        at += got;
        if (got < wanted) break;
    }
    if (at != bytes) return Error{EPROTO, fmt::format("{} bytes came instead of {}", at, bytes)};
    return {};
}

void echo(int socket, std::size_t size) {
    std::vector<std::byte> block(size);
    while (receive_all(socket, block) == size && send_all(socket, block)) {
    }
    shutdown(socket, SHUT_WR);
}

}  // namespace

Result<Host> Host::open(const std::string& name) {
    Host host;
    host.there_ = FileDescriptor(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    if (!host.there_.valid()) return system_error("network namespace " + name);
    host.here_ = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!host.here_.valid()) return system_error("own network namespace");
    return host;
}

Result<FileDescriptor> Host::socket_here() const {
    if (there_.valid() && setns(there_.get(), CLONE_NEWNET) != 0) return system_error("setns");
    FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int code = errno;
    if (there_.valid() && setns(here_.get(), CLONE_NEWNET) != 0) return system_error("setns");
    errno = code;
    if (!made.valid()) return system_error("socket");
    const int on = 1;
    setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval patience{kPatience_ms / 1000, 0};
    setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    return made;
}

Result<Ends> connect(const Host& from, const Host& to, in_addr address) {
    auto listener = to.socket_here();
    if (!listener) return listener.error();
    auto connector = from.socket_here();
    if (!connector) return connector.error();
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr = address;
    socklen_t size = sizeof name;
    sockaddr* generic = reinterpret_cast<sockaddr*>(&name);
    if (bind(listener.value().get(), generic, size) != 0 || listen(listener.value().get(), 1) != 0 ||
        getsockname(listener.value().get(), generic, &size) != 0)
        return system_error("listen");
    if (::connect(connector.value().get(), generic, size) != 0) return system_error("connect");
    FileDescriptor accepted(accept4(listener.value().get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.valid()) return system_error("accept");
    return Ends{std::move(connector.value()), std::move(accepted)};
}

Result<void> stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(processor), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return system_error(fmt::format("to stay on processor {}", processor));
    return {};
}

Result<void> stay_off(int processor) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return system_error("sched_getaffinity");
    CPU_CLR(static_cast<std::size_t>(processor), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return system_error(fmt::format("to stay off processor {}", processor));
    return {};
}

Result<Bulk> measure_bulk(Way& way, const Line& line, Direction direction, double seconds,
                          const Settings& settings) {
    const bool out = direction == Direction::out;
    const int source = out ? line.process.get() : line.peer.get();
    const int sink = out ? line.peer.get() : line.process.get();
    std::vector<std::byte> block;
    if (out)
        block.resize(kBatch);
    else
        while (block.size() < kBatch) append_frame(block, 1, settings.piece);
    const double all_before = cpu_s(RUSAGE_SELF), start = now_s();
    Relay relay(way, line, settings);
    std::uint64_t sent = 0;
    std::thread sender([&] {
        sent = send_for(source, block, seconds);
        // The relay waits for the end of this side, too.
        (void)discard_all(source);
    });
    const auto arrived = discard_all(sink);
    Bulk bulk;
    bulk.seconds = now_s() - start;
    shutdown(sink, SHUT_WR);
    sender.join();
    if (auto done = relay.join(); !done) return done.error();
    bulk.all_cpu_s = cpu_s(RUSAGE_SELF) - all_before;
    if (!arrived) return arrived.error();
    bulk.bytes = out ? sent : arrived.value();
    if (out ? arrived.value() <= sent : sent <= arrived.value())
        return Error{EPROTO, fmt::format("{} bytes were sent, {} came", sent, arrived.value())};
    bulk.relay_cpu_s = relay.cpu();
    bulk.counters = way.counters();
    return bulk;
}

Result<void> check_bytes(Way& way, const Line& line, Direction direction, std::size_t bytes,
                         const Settings& settings) {
    const bool out = direction == Direction::out;
    const int source = out ? line.process.get() : line.peer.get();
    const int sink = out ? line.peer.get() : line.process.get();
    Relay relay(way, line, settings);
    std::thread sender([&] { send_pattern(source, direction, bytes, settings); });
    const auto right = receive_pattern(sink, direction, bytes, settings);
    shutdown(sink, right ? SHUT_WR : SHUT_RDWR);
    if (!right) shutdown(source, SHUT_RDWR);
    sender.join();
    const auto relayed = relay.join();
    return right && !relayed ? relayed : right;
}

Result<double> measure_latency(Way* way, const Line& line, std::size_t size, unsigned count,
                               const Settings& settings) {
    const std::size_t there = size + (way != nullptr ? trunk::kHeaderSize : 0);
    const int peer = way != nullptr ? line.peer.get() : line.connection.get();
    std::optional<Relay> relay;
    if (way != nullptr) relay.emplace(*way, line, settings);
    std::thread answers([&] { echo(peer, there); });
    std::vector<std::byte> message(size);
    std::vector<double> times;
    for (unsigned i = 0; i < count; ++i) {
        const double start = now_s();
        if (!send_all(line.process.get(), message) || receive_all(line.process.get(), message) != size) break;
        times.push_back(now_s() - start);
    }
    const int code = times.size() < count ? errno : 0;
    shutdown(line.process.get(), code == 0 ? SHUT_WR : SHUT_RDWR);
    answers.join();
    if (relay)
        if (auto done = relay->join(); !done) return done.error();
    if (times.size() < count) return Error{code, fmt::format("a message did not come back")};
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return times[count / 2] * 1e6 / 2;
}

}  // namespace mcastcoll::ways
