#include "ofi/station.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/clock.h"
#include "group/news.h"
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

}  // namespace

std::unique_lock<std::mutex> Station::lock() const {
    return std::unique_lock(endpoint_.domain->fabric().mutex());
}

int Station::within(Group& group, Nanoseconds time, FunctionRef<void()> body) noexcept {
    const int thrown = guard([&] { return body(), 0; });
    if (thrown != 0) group.core().break_down(-thrown, time);
    return thrown;
}

void Station::progress() {
    const Nanoseconds time = monotonic_now();
    ++turns_;
    const bool look_around =
        busy_groups_ == 0 || turns_ % kIdleTurns == 0 || time - looked_around_at_ >= kIdleTime;
    if (look_around) looked_around_at_ = time;
    messenger_->poll();
    if (look_around || groups_.any_greeting())
        greetings_.receive([&](Bytes bytes, const group::Source& source) {
            // A greeting that is lost comes again. Echoes measure: what was done before took its time.
            succeeds([&] { joins_.on_datagram(bytes, source, monotonic_now()); });
        });
    receive_multicasts(time);
    busy_groups_ = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        Group& group = groups_[i];
        if (look_around || group.core().busy()) within(group, time, [&] { group.core().pump(time); });
        busy_groups_ += group.core().busy();
    }
    succeeds([&] {
        watch_.check(time, [&](fi_addr_t peer, int error, std::string_view reason) {
            messenger_->poll();  // what it still said counts
            tell_lost(peer, error, reason, time);
        });
    });
    bury_done();
    if (report_.due(time)) succeeds([&] { write_report(time); });
    messenger_->flush_told();
    keep_alarm();
}

void Station::receive_multicasts(Nanoseconds time) {
    if (!multicast_ || groups_.empty()) return;
    // Two batches at a time: enough to keep up, few enough for everything else to get its turn.
    for (int batch = 0; batch < 2; ++batch) {
        const std::size_t taken = multicast_.transport().receive(
            time, [&](Bytes bytes, const SocketAddress& source) { on_datagram(bytes, source, time); });
        if (taken < MulticastTransport::kBatch) break;
    }
}

// Groups share addresses and sockets: whose a datagram is stands in it.
void Station::on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds time) {
    if (bytes.size() < wire::kHeaderBytes) {
        ++groups_.strays().bad_packet;
        return;
    }
    Group* const group = groups_.find_keyed(wire::peek_key(bytes));
    if (group == nullptr)
        ++groups_.strays().foreign_group;
    else
        within(*group, time, [&] { group->on_datagram(bytes, source, time); });
}

bool Station::busy() const {
    return busy_groups_ > 0 || messenger_->under_way() > 0 || groups_.any_busy();
}

void Station::tell_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds time) {
    for (auto& group : groups_)
        within(*group, time, [&] { group->core().on_peer_lost(peer, error, std::string(reason)); });
}

// The messenger has more of them, and its buffers to post again.
void Station::on_message(Bytes message) {
    const Nanoseconds time = monotonic_now();
    const auto take = [&] { dispatch(message, time); };
    // Once more, when there may be memory again: what threw is the reading of it.
    if (succeeds(take) || succeeds(take)) return;
    // It was about a join, which would wait for it in vain.
    for (const auto& group : groups_)
        if (group->core().state() == group::Group::State::greeting) group->core().break_down(FI_ENOMEM, time);
}

void Station::dispatch(Bytes message, Nanoseconds time) {
    if (wire::join_kind(message)) {
        if (!joins_.on_word(message, time)) ++foreign_messages_;  // comes as a datagram, or not at all
        return;
    }
    Group* const group =
        message.size() < wire::kHeaderBytes ? nullptr : groups_.find_keyed(wire::peek_key(message));
    if (group == nullptr)
        ++foreign_messages_;  // of a group that is gone, or of a stranger
    else
        within(*group, time, [&] { group->core().on_message(message, time); });
}

void Station::on_send_error(fi_addr_t peer, int error) {
    log_line(Level::info, "a message to peer {} failed: {}", peer, fi_strerror(error));
    std::string reason;
    succeeds([&] { reason = fmt::format("a message to it failed: {}", fi_strerror(error)); });
    tell_lost(peer, error, reason, monotonic_now());
}

ssize_t Station::collective(const Request& request) {
    Group* group = groups_.find(request.group);
    if (group == nullptr) return -FI_EINVAL;
    Request fitted = request;
    auto checked = fit_to_group(fitted, group->self(), group->size());
    if (checked) checked = check_in_group(fitted, group->self(), group->size());
    if (!checked) {
        log_line(Level::info, "a collective is refused: {}", checked.error().message);
        return -checked.error().code;
    }
    const ssize_t refused = group->submit(fitted, nullptr, monotonic_now());
    if (refused == 0) keep_alarm();
    return refused;
}

Nanoseconds Station::next_deadline() const {
    Nanoseconds next = std::min(watch_.next_deadline(), groups_.next_deadline());
    if (multicast_) next = std::min(next, multicast_.transport().next_deadline());
    return next;
}

bool Station::prepare_wait() {
    progress();
    if (multicast_ && !multicast_.transport().prepare_wait()) return false;
    if (!messenger_->prepare_wait()) return false;
    const Nanoseconds next = next_deadline();
    return next > monotonic_now() && wait_set_.set_alarm(next);
}

// A thread that sleeps went by the deadlines of before. What another thread has begun since, or brought
// further, may have earlier ones, and that thread need not come back.
void Station::keep_alarm() {
    if (!endpoint_.domain->fabric().somebody_sleeps()) return;
    wait_set_.bring_forward(messenger_->must_poll() ? Nanoseconds{} : next_deadline());
}

int Station::close_group(Group& group) {
    const EndpointLock lock(endpoint_);
    const Nanoseconds time = monotonic_now();
    int rc = 0;
    within(group, time, [&] { rc = group.close(time); });
    if (rc != 0) return rc;
    groups_.forget_token(group);
    bury_done();
    return 0;
}

void Station::bury_done() noexcept {
    for (std::size_t i = 0; i < groups_.size();) {
        Group& group = groups_[i];
        if (!group.core().done()) {
            ++i;
            continue;
        }
        joins_.remove(group);
        groups_.remove(group);
        report_.mark();
    }
}

// For mcastcoll-topo. Nobody needs it, so what goes wrong is told and no more.
void Station::write_report(Nanoseconds time) {
    report_.begin(time);
    topology::Report report;
    engine::Counters counters;
    group::LevelCounters levels;
    groups_.sum_counters(counters, levels);
    for (const auto& group : groups_)
        if (group->core().formed() && report.groups.size() < GroupsReport::kMostGroups)
            report.groups.push_back(group::report_of(group->core(), fi_strerror(group->core().error())));
    for (const engine::NamedCounter& counter : engine::kCounters)
        if (counters.*counter.member != 0)
            report.counters.emplace_back(counter.name, counters.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        if (levels.*counter.member != 0) report.counters.emplace_back(counter.name, levels.*counter.member);
    if (auto written = report_.write(report); !written)
        log_line(Level::info, "mcastcoll-topo will not show this process: {}", written.error().message);
}

}  // namespace mcastcoll::ofi
