#include "ofi/live_station.h"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ofi/endpoint.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

// A read with nothing in flight looks after idle groups only every so often: one system call per read would
// be felt.
constexpr std::uint64_t kIdleTurns = 16;
constexpr Nanoseconds kWatchInterval = Nanoseconds::from_ms(10);
constexpr std::size_t kEarlyHellos = 1024;
constexpr std::size_t kFailedJoins = 64;

}  // namespace

Nanoseconds LiveStation::now() const {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(
                std::chrono::steady_clock::now().time_since_epoch())
                .count()};
}

void LiveStation::progress() {
    const Nanoseconds time = now();
    ++turns_;
    const bool look_around = busy_groups_ == 0 || turns_ % kIdleTurns == 0;
    messenger_->poll();
    if (look_around ||
        std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return group->greeting(); }))
        rendezvous_->receive(
            [&](Bytes bytes, const RendezvousSource& source) { on_greeting(bytes, source, time); });
    busy_groups_ = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        Group& group = *groups_[i];
        if (look_around || group.touched() || group.busy()) group.pump(time);
        busy_groups_ += group.busy();
    }
    check_lost(time);
    bury_done();
}

bool LiveStation::busy() const {
    return busy_groups_ > 0 || messenger_->under_way() > 0 ||
           std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return group->busy(); });
}

void LiveStation::check_lost(Nanoseconds time) {
    if (watch_->watched() == 0 || time - watched_at_ < kWatchInterval) return;
    watched_at_ = time;
    std::array<PeerWatch::Id, 16> lost{};
    const std::size_t count = watch_->poll(time, lost);
    for (std::size_t i = 0; i < count; ++i) {
        log(Level::info, "the process of peer {} is gone", lost[i]);
        messenger_->poll();  // what it still said counts
        for (auto& group : groups_) group->on_peer_lost(lost[i], FI_ECONNRESET);
    }
}

void LiveStation::watch(fi_addr_t messenger_peer, const wire::ByteString& watch_point, Nanoseconds time) {
    const auto point = decode_watch_point(watch_point);
    if (!point) return;
    const auto watching = watch_->watch(messenger_peer, point.value(), time);
    if (!watching && watching.error().code != EEXIST)
        log(Level::info, "cannot watch peer {}: {}", messenger_peer, watching.error().message);
}

void LiveStation::on_message(Bytes message) {
    const Nanoseconds time = now();
    if (auto kind = wire::join_kind(message)) {
        if (*kind == wire::JoinKind::welcome) {
            if (auto welcome = wire::decode_welcome(message))
                if (Group* group = find(welcome->id)) group->on_welcome(*welcome, time);
        } else if (auto answer = wire::decode_answer(message);
                   answer && answer->kind == wire::JoinKind::abort) {
            if (Group* group = find(answer->id))
                group->on_abort(static_cast<int>(answer->error & 0xffff), time);
        }
        return;
    }
    if (message.size() < wire::kHeaderBytes) return;
    const auto found = by_key_.find(static_cast<std::uint64_t>(wire::peek_key(message)));
    if (found == by_key_.end())
        ++foreign_messages_;  // of a group that is gone
    else
        found->second->on_message(message, time);
}

void LiveStation::on_send_error(fi_addr_t peer, int error) {
    log(Level::info, "a message to peer {} failed: {}", peer, fi_strerror(error));
    for (auto& group : groups_) group->on_peer_lost(peer, error);
}

void LiveStation::on_greeting(Bytes bytes, const RendezvousSource& source, Nanoseconds time) {
    const auto kind = wire::join_kind(bytes);
    if (kind == wire::JoinKind::hello) {
        if (auto hello = wire::decode_hello(bytes)) on_hello(*hello, source, time);
    } else if (kind == wire::JoinKind::ack || kind == wire::JoinKind::abort) {
        const auto answer = wire::decode_answer(bytes);
        Group* group = answer ? find(answer->id) : nullptr;
        if (group == nullptr || !group->greeting() || group->leads()) return;
        if (answer->kind == wire::JoinKind::ack)
            group->on_ack();
        else
            group->on_abort(static_cast<int>(answer->error & 0xffff), time);
    }
}

void LiveStation::on_hello(const wire::Hello& hello, const RendezvousSource& source, Nanoseconds time) {
    wire::Answer answer{wire::JoinKind::ack, hello.id, 0};
    if (Group* group = find(hello.id)) {
        if (!group->leads() || group->size() != hello.members) return;
        rendezvous_->reply(source, wire::encode(answer));
        return group->on_hello(hello, time);
    }
    for (const wire::Answer& failed : failed_joins_) {
        if (failed.id != hello.id) continue;
        rendezvous_->reply(source, wire::encode(failed));
        return;
    }
    // Our own join is still to come: keep the greeting, without an answer, so that it is repeated should we
    // lose it.
    const bool known = std::any_of(early_hellos_.begin(), early_hellos_.end(), [&](const wire::Hello& early) {
        return early.id == hello.id && early.rank == hello.rank;
    });
    if (known) return;
    if (early_hellos_.size() == kEarlyHellos) early_hellos_.erase(early_hellos_.begin());
    early_hellos_.push_back(hello);
}

void LiveStation::greet(const wire::ByteString& leader, std::uint32_t attempt, Bytes hello) {
    // The leader very likely has the first candidate port: every other attempt goes there.
    rendezvous_->send(leader, attempt % 2 == 0 ? 0 : attempt / 2 + 1, hello);
}

void LiveStation::on_keyed(Group& group) {
    by_key_[static_cast<std::uint64_t>(*group.key())] = &group;
}

void LiveStation::remember_failed(const wire::JoinId& id, int error) {
    if (failed_joins_.size() == kFailedJoins) failed_joins_.erase(failed_joins_.begin());
    failed_joins_.push_back({wire::JoinKind::abort, id, static_cast<std::uint32_t>(error)});
}

Group* LiveStation::find(const wire::JoinId& id) {
    for (auto& group : groups_)
        if (group->id() == id) return group.get();
    return nullptr;
}

Group* LiveStation::find(fi_addr_t token) {
    const auto found = by_token_.find(token);
    return found == by_token_.end() ? nullptr : found->second;
}

ssize_t LiveStation::broadcast(void* buffer, std::size_t bytes, fi_addr_t token, fi_addr_t root,
                               std::uint64_t flags, void* context) {
    Group* group = find(token);
    if (group == nullptr || root >= group->size()) return -FI_EINVAL;
    return group->submit(engine::OperationKind::broadcast, rank_of(root), buffer, bytes, flags, context,
                         now());
}

ssize_t LiveStation::barrier(fi_addr_t token, std::uint64_t flags, void* context) {
    Group* group = find(token);
    if (group == nullptr) return -FI_EINVAL;
    return group->submit(engine::OperationKind::barrier, rank_of(0), nullptr, 0, flags, context, now());
}

bool LiveStation::prepare_wait() {
    progress();
    if (!messenger_->prepare_wait()) return false;
    const Nanoseconds time = now();
    Nanoseconds next = kNever;
    for (const auto& group : groups_) next = std::min(next, group->next_deadline());
    next = std::min(next, watch_->next_deadline());
    if (next <= time) return false;
    itimerspec alarm{};
    if (next != kNever) {
        alarm.it_value.tv_sec = next.value / 1'000'000'000;
        alarm.it_value.tv_nsec = next.value % 1'000'000'000;
    }
    return timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr) == 0;
}

void LiveStation::add_to_poll_set(int descriptor) {
    if (descriptor < 0) return;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(poll_set_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
        log(Level::warn, "cannot wait for descriptor {}: {}", descriptor, std::strerror(errno));
}

int LiveStation::close_group(Group& group) {
    const EndpointLock lock(endpoint_);
    if (const int rc = group.close(now()); rc != 0) return rc;
    by_token_.erase(group.token());
    bury_done();
    return 0;
}

void LiveStation::bury_done() {
    for (std::size_t i = 0; i < groups_.size();) {
        Group& group = *groups_[i];
        if (!group.done()) {
            ++i;
            continue;
        }
        group.add_counters(ended_counters_, ended_wire_counters_);
        if (auto key = group.key()) by_key_.erase(static_cast<std::uint64_t>(*key));
        groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

}  // namespace mcastcoll::ofi
