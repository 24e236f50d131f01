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

bool is_ready(int descriptor, short events) {
    pollfd entry{descriptor, events, 0};
    return ::poll(&entry, 1, 0) > 0;
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
    watch->timeout_ms_ = options.peer_timeout_ms;
    watch->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!watch->epoll_.valid()) return system_error(errno, "cannot watch peers");
    watch->local_point_.host = local_host_id();
    watch->local_point_.pid = static_cast<std::uint32_t>(::getpid());
    if (auto start = process_start_time(::getpid())) watch->local_point_.start_time = start.value();
    if (options.local.valid())
        if (auto opened = watch->open_listener(options.local); !opened) return opened.error();
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
    if (watches_.contains(id)) return Error{EEXIST, fmt::format("peer {} is watched already", id)};
    if (watches_.size() == kMaxWatches)
        return Error{ENOSPC, fmt::format("no more than {} peers can be watched", kMaxWatches)};
    Watch fresh;
    fresh.id = id;
    fresh.point = point;
    fresh.reachable = point.listener.valid() && !point.listener.is_wildcard() && point.listener.port() != 0;
    fresh.neighbour = point.pid != 0 && point.host != 0 && point.host == local_point_.host;
    if (!fresh.reachable && !fresh.neighbour)
        return Error{EOPNOTSUPP,
                     fmt::format("peer {} has no address to watch it at and is no neighbour", id)};
    fresh.give_up = now + Nanoseconds::from_ms(timeout_ms_);
    const int code = restart(fresh, now);
    if (code != 0 && !fresh.reachable && !is_own_shortage(code))
        return system_error(code, fmt::format("cannot watch process {}", point.pid));
    if (fresh.state == State::kConnecting) due_ = std::min({due_, fresh.give_up, fresh.try_again});
    watches_.emplace(id, std::move(fresh));
    return {};
}

// Keepalive is what asks a connected peer's kernel. An idle time of a second makes it ask within one.
void PeerWatch::look(Id id, Nanoseconds now) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    Watch& watch = found->second;
    if (watch.state == State::kConnected)
        (void)set_option(watch.descriptor.get(), IPPROTO_TCP, TCP_KEEPIDLE, 1, "TCP_KEEPIDLE").ok();
    if (watch.state != State::kConnecting) return;
    watch.try_again = now;
    due_ = std::min(due_, now);
}

// 0, or an errno.
int PeerWatch::watch_process(Watch& watch) {
    drop(watch);
    watch.descriptor = open_process(watch.point.pid);
    const int code = watch.descriptor.valid() ? 0 : errno;
    if (code != 0 && code != ESRCH) return code;
    bool ended = code == ESRCH;
    if (!ended) {
        // The start time is read after the descriptor is held. Where /proc hides other users' processes the
        // number must do.
        const auto start = process_start_time(static_cast<pid_t>(watch.point.pid));
        ended = start && watch.point.start_time != 0 && start.value() != watch.point.start_time;
    }
    if (!ended)
        if (const int failed = subscribe(watch, EPOLLIN); failed != 0) return failed;
    watch.state = State::kProcess;
    if (ended) mark_process_dead(watch);
    return 0;
}

// Asks for the process, or sends a request to connect in place of an earlier unanswered one: 0 or an errno.
// A kernel that refuses us the process leaves TCP.
int PeerWatch::restart(Watch& watch, Nanoseconds now) {
    const std::int64_t period_ns = std::max<std::int64_t>(timeout_ms_ * 1'000'000 / kAttempts, 1'000'000);
    watch.try_again = now + Nanoseconds{period_ns};
    int code = watch.neighbour ? watch_process(watch) : EINPROGRESS;
    if (code != 0 && watch.reachable) code = connect_to(watch);
    if (code == 0 || code == EINPROGRESS) return 0;
    note_unanswered(watch, code);
    return code;
}

// Unreachable for now may pass: the next attempt asks again until the timeout.
void PeerWatch::note_unanswered(Watch& watch, int code) {
    drop(watch);
    watch.unanswered = code;
    if (is_certain_death(code))
        mark_dead(watch, fmt::format("nobody listens at {} any more ({}): its process has ended",
                                     watch.point.listener, std::strerror(code)));
}

int PeerWatch::connect_to(Watch& watch) {
    const SocketAddress& to = watch.point.listener;
    drop(watch);
    watch.descriptor = FileDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!watch.descriptor.valid()) return errno;
    const int descriptor = watch.descriptor.get();
    if (const int code = keep_alive(descriptor, timeout_ms_); code != 0) return code;
    if (::connect(descriptor, to.data(), to.size()) != 0 && errno != EINPROGRESS) return errno;
    return subscribe(watch, EPOLLOUT);
}

int PeerWatch::subscribe(const Watch& watch, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = watch.id;
    const int descriptor = watch.descriptor.get();
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return 0;
    if (errno != EEXIST) return errno;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0 ? 0 : errno;
}

// A child of fork() may hold it: then closing it here does not take it out of the set. But a child that
// closes what it has inherited has the same set, and is to leave it as it is.
void PeerWatch::drop(Watch& watch) {
    if (watch.descriptor.valid() && ::getpid() == opener_)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.descriptor.get(), nullptr);
    watch.descriptor.reset();
}

void PeerWatch::unwatch(Id id) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    drop(found->second);
    watches_.erase(found);
}

void PeerWatch::mark_dead(Watch& watch, std::string reason) {
    watch.state = State::kDead;
    watch.reason = std::move(reason);
    drop(watch);
    due_ = Nanoseconds{0};
}

void PeerWatch::mark_process_dead(Watch& watch) {
    mark_dead(watch, fmt::format("its process {} has ended", watch.point.pid));
}

// The event may be of before the last change: what counts is what the descriptor says.
void PeerWatch::on_event(Watch& watch) {
    const int descriptor = watch.descriptor.get();
    switch (watch.state) {
        case State::kDead:
            return;
        case State::kProcess:
            if (is_ready(descriptor, POLLIN)) mark_process_dead(watch);
            return;
        case State::kConnecting:
            if (is_ready(descriptor, POLLOUT)) on_connecting(watch);
            return;
        case State::kConnected:
            on_connected(watch);
            return;
    }
}

void PeerWatch::on_connecting(Watch& watch) {
    int code = error_of_socket(watch.descriptor.get());
    if (code == 0) code = subscribe(watch, EPOLLIN | EPOLLRDHUP);
    if (code == 0)
        watch.state = State::kConnected;
    else
        note_unanswered(watch, code);
}

void PeerWatch::on_connected(Watch& watch) {
    const int code = error_of_socket(watch.descriptor.get());
    // Reset, ended, or silent for as long as the kernel was told to wait.
    const SocketAddress& at = watch.point.listener;
    if (code == ETIMEDOUT)
        mark_dead(watch, fmt::format("{} answered no keepalive for {} ms", at, timeout_ms_));
    else if (code != 0)
        mark_dead(watch, fmt::format("the idle connection to {} broke: {}", at, std::strerror(code)));
    else if (!is_open(watch.descriptor.get()))
        mark_dead(watch, fmt::format("the idle connection to {} was closed: its process has ended", at));
}

// Who could not be asked, because nothing is left here to ask with, may be alive. But whoever waits for it
// without a watch might wait for ever.
void PeerWatch::give_up(Watch& watch) {
    const bool short_here = is_own_shortage(watch.unanswered);
    if (short_here) watch.error = watch.unanswered;
    const std::string who =
        watch.reachable ? watch.point.listener.to_string() : fmt::format("process {}", watch.point.pid);
    const std::string why =
        watch.unanswered == 0 ? std::string() : fmt::format(" ({})", std::strerror(watch.unanswered));
    mark_dead(watch, fmt::format("{} could not be {} for {} ms{}", who, short_here ? "watched" : "reached",
                                 timeout_ms_, why));
}

// Tries again what is due, gives up, and tells who is dead.
std::size_t PeerWatch::look_after(Nanoseconds now, std::span<Death> dead) {
    Nanoseconds due = kNever;
    std::size_t told = 0;
    for (auto next = watches_.begin(); next != watches_.end();) {
        const auto at = next++;
        Watch& watch = at->second;
        if (watch.state == State::kConnecting && now >= watch.give_up)
            give_up(watch);
        else if (watch.state == State::kConnecting && now >= watch.try_again)
            restart(watch, now);
        if (watch.state == State::kConnecting) due = std::min({due, watch.give_up, watch.try_again});
        if (watch.state != State::kDead) continue;
        if (told == dead.size()) {
            due = Nanoseconds{0};
            continue;
        }
        dead[told++] = {watch.id, watch.error, std::move(watch.reason)};
        watches_.erase(at);
    }
    due_ = due;
    return told;
}

std::size_t PeerWatch::poll(Nanoseconds now, std::span<Death> dead) {
    std::array<epoll_event, 64> events;
    const int got = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < got; ++i)
        if (const auto found = watches_.find(events[static_cast<std::size_t>(i)].data.u64);
            found != watches_.end())
            on_event(found->second);
    if (listener_.valid() && now >= backlog_check_) {
        backlog_check_ = now + kBacklogPeriod;
        thin_backlog();
    }
    return got > 0 || now >= due_ ? look_after(now, dead) : 0;
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
