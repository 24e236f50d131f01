#include "ofi/live_station.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "ofi/endpoint.h"
#include "provider/guard.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

// A read with nothing in flight looks after idle groups only every so often: one system call per read would
// be felt.
constexpr std::uint64_t kIdleTurns = 16;
// Who is seldom let run makes few turns, and looks after them all the same.
constexpr Nanoseconds kIdleTime = Nanoseconds::from_ms(1);
constexpr Nanoseconds kWatchInterval = Nanoseconds::from_ms(10);

}  // namespace

// Names that are no network addresses are of this host.
bool LiveStation::same_host(const wire::ByteString& one, const wire::ByteString& other) const {
    const auto first = SocketAddress::from_bytes(one), second = SocketAddress::from_bytes(other);
    return first && second ? first.value().same_host(second.value()) : first.ok() == second.ok();
}

void LiveStation::foreign_version(const group::Source& source, std::uint8_t version) {
    log(Level::warn, "{} greets in version {} of the join, and this is {}: all members need the same release",
        RendezvousSource::from_bytes(source).to_string(), version, wire::kJoinVersion);
}

std::unique_lock<std::mutex> LiveStation::lock() const {
    return std::unique_lock(endpoint_.domain->fabric().mutex());
}

int LiveStation::within(Group& group, Nanoseconds time, FunctionRef<void()> body) noexcept {
    const int thrown = guard([&] { return body(), 0; });
    if (thrown != 0) group.core().break_down(-thrown, time);
    return thrown;
}

int LiveStation::progress_with_lock() {
    const auto held = lock();
    progress();
    return 0;
}

void LiveStation::progress() {
    const Nanoseconds time = monotonic_now();
    ++turns_;
    const bool look_around =
        busy_groups_ == 0 || turns_ % kIdleTurns == 0 || time - looked_around_at_ >= kIdleTime;
    if (look_around) looked_around_at_ = time;
    messenger_->poll();
    if (look_around || std::any_of(groups_.begin(), groups_.end(),
                                   [](const auto& group) { return group->core().greeting(); }))
        rendezvous_->receive([&](Bytes bytes, const RendezvousSource& source) {
            // A greeting that is lost comes again. Echoes measure: what was done before took its time.
            const Bytes from = source.bytes();
            succeeds([&] { joins_.on_datagram(bytes, {from.begin(), from.end()}, monotonic_now()); });
        });
    receive_multicasts(time);
    busy_groups_ = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        Group& group = *groups_[i];
        if (look_around || group.core().touched() || group.core().busy())
            within(group, time, [&] { group.core().pump(time); });
        busy_groups_ += group.core().busy();
    }
    succeeds([&] { check_lost(time); });
    bury_done();
    if (report_.due(time)) succeeds([&] { write_report(time); });
    messenger_->flush_told();
    keep_alarm();
}

void LiveStation::receive_multicasts(Nanoseconds time) {
    if (!multicast_ || groups_.empty()) return;
    // Two batches at a time: enough to keep up, few enough for everything else to get its turn.
    for (int batch = 0; batch < 2; ++batch) {
        const std::size_t taken = multicast_.transport().receive(
            time, [&](Bytes bytes, const SocketAddress& source) { on_datagram(bytes, source, time); });
        if (taken < MulticastTransport::kBatch) break;
    }
}

// Groups share addresses and sockets: whose a datagram is stands in it.
void LiveStation::on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds time) {
    if (bytes.size() < wire::kHeaderBytes) {
        ++ended_counters_.bad_packet;
        return;
    }
    const auto found = by_key_.find(static_cast<std::uint64_t>(wire::peek_key(bytes)));
    if (found == by_key_.end())
        ++ended_counters_.foreign_group;
    else
        within(*found->second, time, [&] { found->second->on_datagram(bytes, source, time); });
}

bool LiveStation::busy() const {
    return busy_groups_ > 0 || messenger_->under_way() > 0 ||
           std::any_of(groups_.begin(), groups_.end(),
                       [](const auto& group) { return group->core().busy(); });
}

void LiveStation::check_lost(Nanoseconds time) {
    if (watch_->watched() == 0 || time - watched_at_ < kWatchInterval) return;
    watched_at_ = time;
    std::array<PeerWatch::Death, 16> lost{};
    const std::size_t count = watch_->poll(time, lost);
    for (std::size_t i = 0; i < count; ++i) {
        // No warning yet: it may have left in peace. Groups that it is a loss for warn, with the reason.
        log(Level::info, "peer {} is lost: {}", lost[i].id, lost[i].reason);
        messenger_->poll();  // what it still said counts
        tell_lost(lost[i].id, lost[i].error, lost[i].reason, time);
    }
}

void LiveStation::tell_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds time) {
    for (auto& group : groups_)
        within(*group, time, [&] { group->core().on_peer_lost(peer, error, std::string(reason)); });
}

void LiveStation::watch(fi_addr_t messenger_peer, const wire::ByteString& watch_point, Nanoseconds time) {
    const auto point = decode_watch_point(watch_point);
    if (!point) return;
    const auto watching = watch_->watch(messenger_peer, point.value(), time);
    if (!watching && watching.error().code != EEXIST)
        log(Level::info, "cannot watch peer {}: {}", messenger_peer, watching.error().message);
}

void LiveStation::look_at(fi_addr_t messenger_peer, const wire::ByteString& watch_point, Nanoseconds time) {
    ++doubts_;
    watch(messenger_peer, watch_point, time);
    watch_->look(messenger_peer, time);
}

// The messenger has more of them, and its buffers to post again.
void LiveStation::on_message(Bytes message) {
    const Nanoseconds time = monotonic_now();
    const auto take = [&] { dispatch(message, time); };
    // Once more, when there may be memory again: what threw is the reading of it.
    if (succeeds(take) || succeeds(take)) return;
    // It was about a join, which would wait for it in vain.
    for (const auto& group : groups_)
        if (group->core().greeting()) group->core().break_down(FI_ENOMEM, time);
}

void LiveStation::dispatch(Bytes message, Nanoseconds time) {
    if (wire::join_kind(message)) {
        if (!joins_.on_word(message, time)) ++foreign_messages_;  // comes as a datagram, or not at all
        return;
    }
    const auto found = message.size() < wire::kHeaderBytes
                           ? by_key_.end()
                           : by_key_.find(static_cast<std::uint64_t>(wire::peek_key(message)));
    if (found == by_key_.end())
        ++foreign_messages_;  // of a group that is gone, or of a stranger
    else
        within(*found->second, time, [&] { found->second->core().on_message(message, time); });
}

void LiveStation::on_send_error(fi_addr_t peer, int error) {
    log(Level::info, "a message to peer {} failed: {}", peer, fi_strerror(error));
    std::string reason;
    succeeds([&] { reason = fmt::format("a message to it failed: {}", fi_strerror(error)); });
    tell_lost(peer, error, reason, monotonic_now());
}

void LiveStation::greet(const wire::ByteString& member, std::uint32_t attempt, Bytes message) {
    // Members very likely have the first candidate port: every other attempt goes there.
    rendezvous_->send(member, attempt % 2 == 0 ? 0 : attempt / 2 + 1, message);
}

void LiveStation::on_keyed(Group& group) {
    for (const GroupKey key : group.keys()) by_key_[static_cast<std::uint64_t>(key)] = &group;
}

Group* LiveStation::find(fi_addr_t token) {
    const auto found = by_token_.find(token);
    return found == by_token_.end() ? nullptr : found->second;
}

ssize_t LiveStation::collective(const Request& request) {
    Group* group = find(request.group);
    if (group == nullptr) return -FI_EINVAL;
    Request fitted = request;
    auto checked = fit_to_group(fitted, group->self(), group->size());
    if (checked) checked = check_in_group(fitted, group->self(), group->size());
    if (!checked) {
        log(Level::info, "a collective is refused: {}", checked.error().message);
        return -checked.error().code;
    }
    const ssize_t refused = group->submit(fitted, nullptr, monotonic_now());
    if (refused == 0) keep_alarm();
    return refused;
}

Nanoseconds LiveStation::next_deadline() const {
    Nanoseconds next = watch_->next_deadline();
    for (const auto& group : groups_) next = std::min(next, group->core().next_deadline());
    if (multicast_) next = std::min(next, multicast_.transport().next_deadline());
    return next;
}

bool LiveStation::prepare_wait() {
    progress();
    if (multicast_ && !multicast_.transport().prepare_wait()) return false;
    if (!messenger_->prepare_wait()) return false;
    const Nanoseconds next = next_deadline();
    return next > monotonic_now() && set_alarm(next);
}

// A timer of 0 would be none; one in the past rings at once.
bool LiveStation::set_alarm(Nanoseconds time) {
    alarm_at_ = time;
    itimerspec alarm{};
    if (time != kNever) {
        const std::int64_t value = std::max<std::int64_t>(time.value, 1);
        alarm.it_value.tv_sec = value / 1'000'000'000;
        alarm.it_value.tv_nsec = value % 1'000'000'000;
    }
    return timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr) == 0;
}

// A thread that sleeps went by the deadlines of before. What another thread has begun since, or brought
// further, may have earlier ones, and that thread need not come back.
void LiveStation::keep_alarm() {
    if (!endpoint_.domain->fabric().somebody_sleeps()) return;
    const Nanoseconds next = messenger_->must_poll() ? Nanoseconds{} : next_deadline();
    if (next < alarm_at_) set_alarm(next);
}

// Who slept without one of them would not wake.
Result<void> LiveStation::add_to_poll_set(int descriptor) {
    if (descriptor < 0) return {};
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
    const int error = errno;
    return Error{error, fmt::format("cannot wait for descriptor {}: {}", descriptor, std::strerror(error))};
}

int LiveStation::close_group(Group& group) {
    const EndpointLock lock(endpoint_);
    const Nanoseconds time = monotonic_now();
    int rc = 0;
    within(group, time, [&] { rc = group.close(time); });
    if (rc != 0) return rc;
    by_token_.erase(group.token());
    bury_done();
    return 0;
}

void LiveStation::bury_done() noexcept {
    for (std::size_t i = 0; i < groups_.size();) {
        Group& group = *groups_[i];
        if (!group.core().done()) {
            ++i;
            continue;
        }
        group.add_counters(ended_counters_, ended_levels_);
        joins_.remove(group);
        for (const GroupKey key : group.keys()) by_key_.erase(static_cast<std::uint64_t>(key));
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
        report_.mark();
    }
}

}  // namespace mcastcoll::ofi
