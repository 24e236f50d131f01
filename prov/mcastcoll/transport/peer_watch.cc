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

namespace mcastcoll::transport {
namespace {

// The longest wait for an answer to a connection request before the request is repeated.
constexpr Nanoseconds kAttempt = Nanoseconds::from_ms(5000);
constexpr int kAttempts = 4;  // minimum number within the timeout
constexpr std::int64_t kMaxKeepaliveSeconds = 10;
// A connection that stayed open for this long was accepted by the peer's listener as a watcher's.
constexpr Nanoseconds kLasting = Nanoseconds::from_ms(10'000);
// A connection request counts as unanswered after this time.
constexpr Nanoseconds kSilent = Nanoseconds::from_ms(1000);
// After this number of consecutive short connections, a peer counts as dead if gateways are in use. Otherwise
// the next connection request waits for kPause.
constexpr unsigned kMaxClosings = 3;
constexpr Nanoseconds kPause = Nanoseconds::from_ms(1000);

// Calls pidfd_open(), for which glibc has a function only since 2.36, and not in a header that C++ can
// include on every system.
FileDescriptor open_process(std::uint32_t pid) {
    return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

bool is_ready(int descriptor, short events) {
    pollfd entry{descriptor, events, 0};
    return ::poll(&entry, 1, 0) > 0;
}

// True if keepalive probes or retransmitted bytes are unanswered.
bool has_unanswered(int connection) {
    tcp_info info{};
    socklen_t size = sizeof info;
    return ::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           (info.tcpi_probes > 0 || info.tcpi_retransmits > 0);
}

// True if the error means that the other side's kernel or a host in between has ended the connection.
bool is_end_of_connection(int code) {
    return code == ECONNRESET || code == EPIPE;
}

// Returns the socket's pending error: 0 or an errno value.
int error_of_socket(int descriptor) {
    int code = 0;
    socklen_t size = sizeof code;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

Nanoseconds part_of(Nanoseconds whole, int parts, Nanoseconds max) {
    return std::clamp(Nanoseconds{whole.value / parts}, Nanoseconds::from_ms(1), max);
}

// Returns the last part of the host timeout, which is reserved for a request on a new connection.
Nanoseconds last_part(Nanoseconds timeout) {
    return part_of(timeout, 8, kAttempt);
}

int keep_alive(int descriptor, Nanoseconds timeout) {
    const std::int64_t silent_ms = (timeout - last_part(timeout)).value / 1'000'000;
    const int period_s =
        static_cast<int>(std::clamp<std::int64_t>(silent_ms / 1000 / kAttempts, 1, kMaxKeepaliveSeconds));
    const auto set = set_options(
        descriptor, {{SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
                     {IPPROTO_TCP, TCP_KEEPIDLE, period_s, "TCP_KEEPIDLE"},
                     {IPPROTO_TCP, TCP_KEEPINTVL, period_s, "TCP_KEEPINTVL"},
                     {IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::max<std::int64_t>(silent_ms, 1)),
                      "TCP_USER_TIMEOUT"}});
    return set ? 0 : set.error().code;
}

std::string text_of_time(std::int64_t ms) {
    return ms < 10'000 ? fmt::format("{} ms", ms) : fmt::format("{} s", (ms + 500) / 1000);
}

std::string text_of_end(const WatchPoint& point) {
    return point.pid == 0 ? std::string("its process has ended")
                          : fmt::format("its process {} has ended", point.pid);
}

}  // namespace

Result<std::unique_ptr<PeerWatch>> PeerWatch::open(const PeerWatchOptions& options) {
    if (options.host_timeout_ms < 1 || options.host_timeout_ms > INT32_MAX)
        return Error{EINVAL, fmt::format("the host timeout is 1 to {} ms, not {}", INT32_MAX,
                                         options.host_timeout_ms)};
    std::unique_ptr<PeerWatch> watch(new PeerWatch);
    watch->timeout_ = Nanoseconds::from_ms(options.host_timeout_ms);
    watch->has_gateways_ = options.has_gateways;
    watch->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    if (!watch->epoll_.valid()) return system_error(errno, "cannot watch peers");
    WatchPoint& point = watch->local_point_;
    point.host = local_host_id();
    point.pid = static_cast<std::uint32_t>(::getpid());
    if (auto start = process_start_time(::getpid())) point.start_time = start.value();
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(&point.token, 1))); !drawn)
        return drawn.error();
    if (!options.local.valid()) return watch;
    auto listening = watch->listener_.open(options.local, point.token);
    if (!listening) return listening.error();
    point.listener = listening.value();
    return watch;
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
        return Error{
            EOPNOTSUPP,
            fmt::format("peer {} has no address at which it can be watched, and is not on this host", id)};
    fresh.since = now;
    fresh.give_up = now + timeout_;
    const int code = restart(fresh, now);
    if (code != 0 && !fresh.reachable && !is_own_shortage(code))
        return system_error(code, fmt::format("cannot watch process {}", point.pid));
    if (fresh.state == State::kConnecting) due_ = std::min({due_, fresh.give_up, fresh.try_again});
    watches_.emplace(id, std::move(fresh));
    return {};
}

// The kernel of a connected peer is probed by keepalive: an idle time of one second causes a probe within a
// second. A connection request is repeated at once.
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

void PeerWatch::look_at_all(Nanoseconds now) {
    for (const auto& [id, watch] : watches_) look(id, now);
}

bool PeerWatch::any_silent(Nanoseconds now) const {
    return std::ranges::any_of(watches_, [&](const auto& entry) {
        const Watch& watch = entry.second;
        if (watch.state == State::kConnecting) return now - watch.since >= kSilent;
        return watch.state == State::kConnected && has_unanswered(watch.descriptor.get());
    });
}

// Watches a process of this host through a pidfd. Returns 0 or an errno value.
int PeerWatch::watch_process(Watch& watch) {
    drop(watch);
    watch.descriptor = open_process(watch.point.pid);
    const int code = watch.descriptor.valid() ? 0 : errno;
    if (code != 0 && code != ESRCH) return code;
    bool ended = code == ESRCH;
    if (!ended) {
        // The start time is read while the descriptor is held. If /proc hides other users' processes, the pid
        // alone must suffice.
        const auto start = process_start_time(static_cast<pid_t>(watch.point.pid));
        ended = start && watch.point.start_time != 0 && start.value() != watch.point.start_time;
    }
    if (!ended)
        if (const int failed = subscribe(watch.descriptor, watch.id, EPOLLIN); failed != 0) return failed;
    watch.state = State::kProcess;
    if (ended) mark_dead(watch, ECONNRESET, text_of_end(watch.point));
    return 0;
}

// Opens the process's pidfd, or repeats an unanswered connection request. Returns 0 or an errno value. If the
// kernel refuses the pidfd, TCP is used. A host that has not answered an earlier request may be alive but
// have no room for another connection, so another port is tried as well.
int PeerWatch::restart(Watch& watch, Nanoseconds now) {
    watch.try_again = now + part_of(timeout_, kAttempts, kAttempt);
    int code = watch.neighbour ? watch_process(watch) : EINPROGRESS;
    if (code != 0 && watch.reachable) {
        drop(watch);
        code = request(watch.point.listener, watch.descriptor, watch.id);
        if (watch.checks_host) check_host(watch);
        watch.checks_host = true;
    }
    if (code == 0 || code == EINPROGRESS) return 0;
    note_unanswered(watch, code);
    return code;
}

// Connects again after `pause`, because a connection has ended, but perhaps not the peer's process. The peer
// counts as dead if it does not answer within `limit`.
void PeerWatch::reconnect(Watch& watch, Nanoseconds silent_since, Nanoseconds limit, Nanoseconds pause,
                          Nanoseconds now) {
    watch.state = State::kConnecting;
    watch.since = silent_since;
    watch.give_up = now + limit;
    watch.unanswered = 0;
    watch.checks_host = true;
    drop(watch);
    watch.try_again = now + pause;
    if (pause.value == 0) restart(watch, now);
    due_ = std::min({due_, watch.give_up, watch.try_again});
}

// Sends a connection request to another port of the peer's host. Any answer shows that the host is alive.
// Most likely no socket listens there, and the host's kernel refuses the connection.
void PeerWatch::check_host(Watch& watch) {
    const SocketAddress& listener = watch.point.listener;
    if (request(listener.with_port(listener.port() ^ 1U), watch.other_port, watch.id) == 0) return;
    drop(watch.other_port);
}

// Handles the error of a connection request. A refused connection is an answer of the host: the peer's
// process has ended. Other errors may be temporary: the request is repeated until the timeout.
void PeerWatch::note_unanswered(Watch& watch, int code) {
    drop(watch.descriptor);
    watch.unanswered = code;
    if (code == ECONNREFUSED) mark_dead(watch, ECONNRESET, text_of_end(watch.point));
}

// Requests a connection. Returns 0 or an errno value.
int PeerWatch::request(const SocketAddress& to, FileDescriptor& connection, Id id) {
    drop(connection);
    connection = FileDescriptor(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection.valid()) return errno;
    if (const int code = keep_alive(connection.get(), timeout_); code != 0) return code;
    if (::connect(connection.get(), to.data(), to.size()) != 0 && errno != EINPROGRESS) return errno;
    return subscribe(connection, id, EPOLLOUT);
}

int PeerWatch::subscribe(const FileDescriptor& descriptor, Id id, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) == 0) return 0;
    if (errno != EEXIST) return errno;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor.get(), &event) == 0 ? 0 : errno;
}

// Removes the descriptor from the epoll set explicitly: if a child of fork() holds a copy, closing the
// descriptor here does not remove the entry. A child that closes its copies must not do this, because parent
// and child share the epoll set.
void PeerWatch::drop(FileDescriptor& descriptor) {
    if (descriptor.valid() && ::getpid() == opener_)
        (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor.get(), nullptr);
    descriptor.reset();
}

void PeerWatch::drop(Watch& watch) {
    drop(watch.descriptor);
    drop(watch.other_port);
}

void PeerWatch::unwatch(Id id) {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return;
    drop(found->second);
    watches_.erase(found);
}

void PeerWatch::mark_dead(Watch& watch, int error, std::string reason) {
    watch.state = State::kDead;
    watch.error = error;
    watch.reason = std::move(reason);
    drop(watch);
    due_ = Nanoseconds{0};
}

// The event may predate the last change of state, so the descriptors' present state decides.
void PeerWatch::on_event(Watch& watch, Nanoseconds now) {
    const auto is_answered = [](const FileDescriptor& connection) {
        return connection.valid() && is_ready(connection.get(), POLLOUT);
    };
    switch (watch.state) {
        case State::kDead:
            return;
        case State::kProcess:
            if (is_ready(watch.descriptor.get(), POLLIN))
                mark_dead(watch, ECONNRESET, text_of_end(watch.point));
            return;
        case State::kConnecting:
            if (is_answered(watch.other_port)) on_host_answer(watch, now);
            if (is_answered(watch.descriptor)) on_connecting(watch, now);
            return;
        case State::kConnected:
            on_connected(watch, now);
            return;
    }
}

void PeerWatch::on_host_answer(Watch& watch, Nanoseconds now) {
    const int code = error_of_socket(watch.other_port.get());
    drop(watch.other_port);
    if (code != 0 && code != ECONNREFUSED && code != ECONNRESET) return;
    watch.since = now;
    watch.give_up = now + timeout_;
}

void PeerWatch::on_connecting(Watch& watch, Nanoseconds now) {
    int code = error_of_socket(watch.descriptor.get());
    if (code == 0) code = send_watch_token(watch.descriptor.get(), watch.point.token);
    if (code == 0) code = subscribe(watch.descriptor, watch.id, EPOLLIN | EPOLLRDHUP);
    if (is_end_of_connection(code)) return on_closed(watch, now);
    if (code != 0) return note_unanswered(watch, code);
    drop(watch.other_port);
    watch.state = State::kConnected;
    watch.since = now;
}

// Handles an event of a connection: the connection was reset, has ended, or was silent for the time set in
// keep_alive(). The error of a silent connection depends on the reason of the silence.
void PeerWatch::on_connected(Watch& watch, Nanoseconds now) {
    const int code = error_of_socket(watch.descriptor.get());
    if (code == 0 && is_connection_open(watch.descriptor.get())) return;
    if (code == 0 || is_end_of_connection(code)) return on_closed(watch, now);
    const Nanoseconds last = last_part(timeout_);
    reconnect(watch, now - (timeout_ - last), last, {}, now);
}

// The peer's listener may have closed the connection because it did not recognise a watcher. If the process
// has ended, the next connection request is refused. A gateway refuses no request; there, a series of short
// connections proves the death.
void PeerWatch::on_closed(Watch& watch, Nanoseconds now) {
    if (now - watch.since >= kLasting) watch.closings = 0;
    const bool many = ++watch.closings >= kMaxClosings;
    if (many && has_gateways_) return mark_dead(watch, ECONNRESET, text_of_end(watch.point));
    reconnect(watch, now, timeout_, many ? kPause : Nanoseconds{}, now);
}

// A peer that could not be checked for lack of resources in this process may be alive. The peer is reported
// all the same, because an operation that waits for this peer might never end.
void PeerWatch::give_up(Watch& watch, Nanoseconds now) {
    const std::int64_t silent_ms = (now - watch.since).value / 1'000'000;
    const std::string error =
        watch.unanswered == 0 ? std::string() : fmt::format(" ({})", std::strerror(watch.unanswered));
    if (is_own_shortage(watch.unanswered) || !watch.reachable)
        return mark_dead(watch, watch.unanswered,
                         fmt::format("it could not be watched for {}{}", text_of_time(silent_ms), error));
    mark_dead(watch, EHOSTDOWN,
              fmt::format("{}its host did not respond for {} at {}{}",
                          watch.closings > 0 ? "its connection broke, and " : "", text_of_time(silent_ms),
                          watch.point.listener, error));
}

// Repeats due requests, gives up watches at their timeout, and reports dead peers.
std::size_t PeerWatch::look_after(Nanoseconds now, std::span<Death> dead) {
    Nanoseconds due = kNever;
    std::size_t reported = 0;
    for (auto next = watches_.begin(); next != watches_.end();) {
        const auto at = next++;
        Watch& watch = at->second;
        if (watch.state == State::kConnecting && now >= watch.give_up)
            give_up(watch, now);
        else if (watch.state == State::kConnecting && now >= watch.try_again)
            restart(watch, now);
        if (watch.state == State::kConnecting) due = std::min({due, watch.give_up, watch.try_again});
        if (watch.state != State::kDead) continue;
        if (reported == dead.size()) {
            due = Nanoseconds{0};
            continue;
        }
        dead[reported++] = {watch.id, watch.error, std::move(watch.reason)};
        watches_.erase(at);
    }
    due_ = due;
    return reported;
}

std::size_t PeerWatch::poll(Nanoseconds now, std::span<Death> dead) {
    std::array<epoll_event, 64> events;
    const int got = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < got; ++i)
        if (const auto found = watches_.find(events[static_cast<std::size_t>(i)].data.u64);
            found != watches_.end())
            on_event(found->second, now);
    listener_.look_after(now);
    return got > 0 || now >= due_ ? look_after(now, dead) : 0;
}

}  // namespace mcastcoll::transport
