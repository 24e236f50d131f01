#include "transport/peer_watch.h"

#include <errno.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/system.h"
#include "transport/udp_socket.h"

namespace mcastcoll {
namespace {

constexpr int kBacklog = 4096;  // the kernel cuts it to net.core.somaxconn
constexpr Nanoseconds kBacklogPeriod = Nanoseconds::from_ms(1000);
constexpr int kAttempts = 4;  // requests to connect within the timeout
constexpr int kKeepaliveProbes = 3;

// glibc got a wrapper only in 2.36, and not in a C++ friendly header everywhere.
FileDescriptor open_process(std::uint32_t pid) {
    return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

bool is_readable(int descriptor) {
    pollfd entry{descriptor, POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0;
}

// The peer is not to blame for these: they say nothing about it.
bool is_local_shortage(int code) {
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM || code == EADDRNOTAVAIL ||
           code == EAGAIN;
}

// The host answered for itself: nobody listens there any more.
bool is_certain_death(int code) {
    return code == ECONNREFUSED || code == ECONNRESET || code == EPIPE;
}

// 0 or an errno.
int error_of_socket(int descriptor) {
    int code = 0;
    socklen_t size = sizeof code;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

int keep_alive(int descriptor, std::int64_t timeout_ms) {
    const int period_s =
        static_cast<int>(std::clamp<std::int64_t>(timeout_ms / 1000 / (kKeepaliveProbes + 1), 1, 32767));
    const auto set = set_options(
        descriptor, {{SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
                     {IPPROTO_TCP, TCP_KEEPIDLE, period_s, "TCP_KEEPIDLE"},
                     {IPPROTO_TCP, TCP_KEEPINTVL, period_s, "TCP_KEEPINTVL"},
                     {IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes, "TCP_KEEPCNT"},
                     {IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout_ms), "TCP_USER_TIMEOUT"}});
    return set ? 0 : set.error().code;
}

// False once the other side has closed. Nobody has anything to tell us on these connections: what comes is
// thrown away.
bool is_open(int descriptor) {
    std::array<std::byte, 256> ignored;
    for (int turn = 0; turn < 4; ++turn) {
        const ssize_t got = ::recv(descriptor, ignored.data(), ignored.size(), MSG_DONTWAIT);
        if (got > 0) continue;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    }
    return true;
}

}  // namespace

Result<std::unique_ptr<PeerWatch>> PeerWatch::open(const PeerWatchOptions& options) {
    if (options.peer_timeout_ms < 1 || options.peer_timeout_ms > INT32_MAX)
        return Error{EINVAL, fmt::format("the peer timeout is 1 to {} ms, not {}", INT32_MAX,
                                         options.peer_timeout_ms)};
    std::unique_ptr<PeerWatch> watch(new PeerWatch);
    watch->options_ = options;
    watch->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!watch->epoll_.valid()) return system_error(errno, "cannot watch peers");
    watch->local_point_.host = local_host_id();
    watch->local_point_.pid = static_cast<std::uint32_t>(::getpid());
    if (auto start = process_start_time(::getpid())) watch->local_point_.start_time = start.value();
    if (options.local.valid())
        if (auto opened = watch->open_listener(options.local); !opened) return opened.error();
    watch->slots_.resize(kMaxWatches);
    for (std::uint32_t i = kMaxWatches; i > 0; --i) watch->free_slots_.push_back(i - 1);
    watch->slot_of_.reserve(kMaxWatches);
    return watch;
}

Result<void> PeerWatch::open_listener(const SocketAddress& local) {
    const SocketAddress at = local.with_port(0);
    listener_ = FileDescriptor(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_.valid()) return system_error(errno, "cannot open the socket that peers watch us by");
    if (::bind(listener_.get(), at.data(), at.size()) != 0 || ::listen(listener_.get(), kBacklog) != 0)
        return system_error(errno, fmt::format("cannot listen at {} for peers to watch us", at));
    auto bound = SocketAddress::of_socket(listener_.get());
    if (!bound) return bound.error();
    local_point_.listener = bound.value();
    return {};
}

Result<void> PeerWatch::watch(Id id, const WatchPoint& point, Nanoseconds now) {
    if (slot_of_.contains(id)) return Error{EEXIST, fmt::format("peer {} is watched already", id)};
    if (free_slots_.empty())
        return Error{ENOSPC, fmt::format("no more than {} peers can be watched", kMaxWatches)};
    const bool reachable =
        point.listener.valid() && !point.listener.is_wildcard() && point.listener.port() != 0;
    const bool neighbour = point.pid != 0 && point.host != 0 && point.host == local_point_.host &&
                           !(options_.tcp_only && reachable);
    if (!reachable && !neighbour)
        return Error{EOPNOTSUPP,
                     fmt::format("peer {} has no address to watch it at and is no neighbour", id)};

    Slot& slot = slots_[free_slots_.back()];
    slot_of_.emplace(id, free_slots_.back());
    free_slots_.pop_back();
    slot.id = id;
    try {
        auto begun = begin(slot, point, {neighbour, reachable}, now);
        if (!begun) unwatch(id);
        return begun;
    } catch (...) {
        unwatch(id);
        throw;
    }
}

// Keepalive is what asks a connected peer's kernel. An idle time of a second makes it ask within one.
void PeerWatch::look(Id id, Nanoseconds now) {
    const auto found = slot_of_.find(id);
    if (found == slot_of_.end()) return;
    Slot& slot = slots_[found->second];
    if (slot.state == State::kConnected)
        (void)set_option(slot.descriptor.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1, "TCP_KEEPIDLE").ok();
    if (slot.state == State::kConnecting) slot.try_again = now;
}

Result<void> PeerWatch::begin(Slot& slot, const WatchPoint& point, Ways ways, Nanoseconds now) {
    slot.point = point;
    slot.ways = ways;
    enter(slot, State::kConnecting);
    slot.give_up = now + Nanoseconds::from_ms(options_.peer_timeout_ms);
    const int code = restart(slot, now);
    if (code == 0 || ways.reachable || is_local_shortage(code)) return {};
    return system_error(code, fmt::format("cannot watch process {}", point.pid));
}

// 0, or an errno.
int PeerWatch::watch_process(Slot& slot) {
    slot.descriptor = open_process(slot.point.pid);
    const int code = slot.descriptor.valid() ? 0 : errno;
    if (code != 0 && code != ESRCH) return code;
    bool ended = code == ESRCH;
    if (!ended) {
        // The start time is read after the descriptor is held. Where /proc hides other users' processes the
        // number must do.
        const auto start = process_start_time(static_cast<pid_t>(slot.point.pid));
        const bool other = start && slot.point.start_time != 0 && start.value() != slot.point.start_time;
        ended = other || is_readable(slot.descriptor.get());
    }
    if (!ended)
        if (const int failed = subscribe(slot, EPOLLIN); failed != 0) return failed;
    if (ended) mark_process_dead(slot);
    enter(slot, State::kProcess);
    return 0;
}

// Asks for the process, or sends a request to connect in place of an earlier unanswered one: 0 or an errno.
// A kernel that refuses us the process leaves TCP.
int PeerWatch::restart(Slot& slot, Nanoseconds now) {
    const std::int64_t period_ns =
        std::max<std::int64_t>(options_.peer_timeout_ms * 1'000'000 / kAttempts, 1'000'000);
    slot.try_again = now + Nanoseconds{period_ns};
    int code = slot.ways.neighbour ? watch_process(slot) : EINPROGRESS;
    if (code != 0 && slot.ways.reachable) code = connect_to(slot);
    if (code == 0 || code == EINPROGRESS) return 0;
    note_unanswered(slot, code);
    return code;
}

// Unreachable for now may pass: the next attempt asks again until the timeout.
void PeerWatch::note_unanswered(Slot& slot, int code) {
    slot.descriptor.reset();
    slot.unanswered = code;
    if (is_certain_death(code))
        mark_dead(slot, fmt::format("nobody listens at {} any more ({}): its process has ended",
                                    slot.point.listener, std::strerror(code)));
}

int PeerWatch::connect_to(Slot& slot) {
    const SocketAddress& to = slot.point.listener;
    slot.descriptor = FileDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!slot.descriptor.valid()) return errno;
    const int descriptor = slot.descriptor.get();
    if (const int code = keep_alive(descriptor, options_.peer_timeout_ms); code != 0) return code;
    if (::connect(descriptor, to.data(), to.size()) != 0 && errno != EINPROGRESS) return errno;
    return subscribe(slot, EPOLLOUT);
}

int PeerWatch::subscribe(const Slot& slot, std::uint32_t events) {
    const std::uint64_t index = static_cast<std::uint64_t>(&slot - slots_.data());
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t{slot.generation} << 32 | index;
    const int descriptor = slot.descriptor.get();
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return 0;
    if (errno != EEXIST) return errno;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0 ? 0 : errno;
}

void PeerWatch::mark_dead(Slot& slot, std::string reason) {
    if (slot.dead) return;
    slot.dead = true;
    slot.reason = std::move(reason);
    slot.descriptor.reset();
    ++dead_;
}

void PeerWatch::mark_process_dead(Slot& slot) {
    mark_dead(slot, fmt::format("its process {} has ended", slot.point.pid));
}

void PeerWatch::enter(Slot& slot, State state) {
    connecting_ -= slot.state == State::kConnecting;
    neighbours_ -= slot.state == State::kProcess;
    slot.state = state;
    connecting_ += slot.state == State::kConnecting;
    neighbours_ += slot.state == State::kProcess;
}

void PeerWatch::release(Slot& slot) {
    if (slot.dead) --dead_;
    enter(slot, State::kFree);
    const std::uint32_t next = slot.generation + 1;
    slot = Slot();
    slot.generation = next;
}

void PeerWatch::unwatch(Id id) {
    const auto found = slot_of_.find(id);
    if (found == slot_of_.end()) return;
    release(slots_[found->second]);
    free_slots_.push_back(found->second);
    slot_of_.erase(found);
}

void PeerWatch::on_event(Slot& slot, std::uint32_t events) {
    switch (slot.state) {
        case State::kFree:
            return;
        case State::kProcess:
            if ((events & EPOLLIN) != 0) mark_process_dead(slot);
            return;
        case State::kConnecting:
            on_connecting(slot);
            return;
        case State::kConnected:
            on_connected(slot);
            return;
    }
}

void PeerWatch::on_connecting(Slot& slot) {
    int code = error_of_socket(slot.descriptor.get());
    if (code == 0) code = subscribe(slot, EPOLLIN | EPOLLRDHUP);
    if (code == 0)
        enter(slot, State::kConnected);
    else
        note_unanswered(slot, code);
}

void PeerWatch::on_connected(Slot& slot) {
    const int code = error_of_socket(slot.descriptor.get());
    // Reset, ended, or silent for as long as the kernel was told to wait.
    const SocketAddress& at = slot.point.listener;
    if (code == ETIMEDOUT)
        mark_dead(slot, fmt::format("{} answered no keepalive for {} ms", at, options_.peer_timeout_ms));
    else if (code != 0)
        mark_dead(slot, fmt::format("the idle connection to {} broke: {}", at, std::strerror(code)));
    else if (!is_open(slot.descriptor.get()))
        mark_dead(slot, fmt::format("the idle connection to {} was closed: its process has ended", at));
}

void PeerWatch::check_deadlines(Nanoseconds now) {
    for (Slot& slot : slots_) {
        if (slot.state != State::kConnecting || slot.dead) continue;
        if (now >= slot.give_up)
            give_up(slot);
        else if (now >= slot.try_again)
            restart(slot, now);
    }
}

// Who could not be asked, because nothing is left here to ask with, may be alive. But whoever waits for it
// without a watch might wait for ever.
void PeerWatch::give_up(Slot& slot) {
    const bool short_here = is_local_shortage(slot.unanswered);
    if (short_here) slot.error = slot.unanswered;
    const std::string who =
        slot.ways.reachable ? slot.point.listener.to_string() : fmt::format("process {}", slot.point.pid);
    const std::string why =
        slot.unanswered == 0 ? std::string() : fmt::format(" ({})", std::strerror(slot.unanswered));
    mark_dead(slot, fmt::format("{} could not be {} for {} ms{}", who, short_here ? "watched" : "reached",
                                options_.peer_timeout_ms, why));
}

std::size_t PeerWatch::poll(Nanoseconds now, std::span<Death> dead) {
    std::array<epoll_event, 64> events;
    const int got = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < got; ++i) {
        const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
        Slot& slot = slots_[static_cast<std::uint32_t>(key)];
        if (slot.generation == static_cast<std::uint32_t>(key >> 32) && !slot.dead)
            on_event(slot, events[static_cast<std::size_t>(i)].events);
    }
    if (connecting_ > 0) check_deadlines(now);
    if (listener_.valid() && now >= backlog_check_) {
        backlog_check_ = now + kBacklogPeriod;
        thin_backlog();
    }
    std::size_t told = 0;
    for (std::size_t i = 0; dead_ > 0 && told < dead.size() && i < slots_.size(); ++i) {
        if (!slots_[i].dead) continue;
        dead[told++] = {slots_[i].id, slots_[i].error, std::move(slots_[i].reason)};
        unwatch(slots_[i].id);
    }
    return told;
}

Nanoseconds PeerWatch::next_deadline() const {
    if (dead_ > 0) return Nanoseconds{0};
    Nanoseconds earliest = kNever;
    if (connecting_ == 0) return earliest;
    for (const Slot& slot : slots_)
        if (slot.state == State::kConnecting) earliest = std::min({earliest, slot.give_up, slot.try_again});
    return earliest;
}

// The kernel reports a listener's backlog in two fields of TCP_INFO that a listener has no other use for.
void PeerWatch::thin_backlog() {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(listener_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    if (info.tcpi_unacked * 2 < info.tcpi_sacked) return;
    std::erase_if(accepted_, [](const FileDescriptor& held) { return !is_open(held.get()); });
    for (std::uint32_t turn = 0; turn < info.tcpi_unacked && accepted_.size() < kMaxWatches; ++turn) {
        FileDescriptor next(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!next.valid()) return;
        if (is_open(next.get())) accepted_.push_back(std::move(next));
    }
}

}  // namespace mcastcoll
