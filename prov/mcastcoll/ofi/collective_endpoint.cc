#include "ofi/collective_endpoint.h"

#include "base/clock.h"
#include "ports/foreign_connections.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

// While groups are busy, idle groups are visited only every 16th turn, because one system call per read would
// be noticeable.
constexpr std::uint64_t kIdleTurns = 16;
// A process that is scheduled rarely makes few turns, so idle groups are also visited after this time.
constexpr Nanoseconds kIdleTime = Nanoseconds::from_ms(1);

constexpr std::size_t kMaxReported = 64;
constexpr Nanoseconds kReportInterval = Nanoseconds::from_ms(200);

topology::Counts nonzero(const engine::Counters& counters, const group::LevelCounters& levels) {
    topology::Counts counts;
    for (const engine::NamedCounter& counter : engine::kCounters)
        if (counters.*counter.member != 0) counts.emplace_back(counter.name, counters.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        if (levels.*counter.member != 0) counts.emplace_back(counter.name, levels.*counter.member);
    return counts;
}

}  // namespace

void CollectiveEndpoint::progress(bool everywhere) {
    const Nanoseconds time = monotonic_now();
    ++turns_;
    // An operation may have started since the last turn.
    if (busy_groups_ == 0) {
        note_busy();
        foreign_pace_.received(time);
    }
    const bool look_around =
        busy_groups_ == 0 || turns_ % kIdleTurns == 0 || time - looked_around_at_ >= kIdleTime;
    if (look_around) looked_around_at_ = time;
    const bool joining = groups_.any_joining();
    // After a sleep all sources are read, because any of them may have ended the sleep.
    const engine::PollHint look =
        poll_selector_.turn(poll_hint_, everywhere || busy_groups_ == 0 || joining || slept_, time);
    if (look.messages || messenger->under_way() > 0) messenger->poll();
    if (busy_groups_ == 0 || joining || slept_ || time - service_read_at_ >= kIdleTime)
        read_service_socket(time);
    slept_ = false;
    if (look.multicasts) receive_multicasts(time);
    if (look_around) groups_.look_around(time);
    groups_.for_each_ready([&](Group& group) {
        ++visits_;
        group.within(time, [&] { group.pump(time); });
    });
    note_busy();
    if (look_around && busy_groups_ > 0 && time >= foreign_pace_.next_look())
        provider::succeeds([&] { end_foreign_connections(time); });
    provider::succeeds([&] {
        watch.check(time, [&](fi_addr_t peer, int error, std::string_view reason) {
            // Messages from before the loss still count.
            messenger->poll();
            report_lost(peer, error, reason, time);
        });
    });
    remove_done();
    if (wants_report(time)) provider::succeeds([&] { write_report(); });
    messenger->flush_queue();
    keep_alarm();
}

void CollectiveEndpoint::note_busy() {
    busy_groups_ = 0;
    poll_hint_ = {};
    groups_.settle();
    for (const Group* group : groups_.ready()) {
        if (!group->core().busy()) continue;
        ++busy_groups_;
        poll_hint_ |= group->core().poll_hint();
    }
}

// Runs when the process waits for members and has received no message for a while: connections of foreign
// hosts may occupy all receive buffers.
void CollectiveEndpoint::end_foreign_connections(Nanoseconds time) {
    std::size_t ended = 0;
    transport::SocketAddress one;
    if (listens_at_ && messenger->is_starved())
        ended = ports::end_connections(*listens_at_, [&](const transport::SocketAddress& from) {
            if (has_members_at(from)) return false;
            one = from;
            return true;
        });
    if (ended > 0 && !foreign_pace_.is_alert())
        provider::log_line(
            provider::Level::warn,
            "closed {} connections from hosts that are not members, for example {}: they occupied all "
            "receive buffers, so that no message of a member arrived; block such hosts from port {} "
            "with a firewall",
            ended, one.to_string(), listens_at_->port());
    foreign_connections_ended_ += ended;
    foreign_pace_.has_looked(ended > 0, time);
}

// Compares with the members of all groups: a member connects from the address at which it listens.
bool CollectiveEndpoint::has_members_at(const transport::SocketAddress& host) const {
    const auto is_there = [&](const wire::ByteString& address) {
        const auto member = transport::SocketAddress::from_bytes(address);
        return member && member.value().same_host(host);
    };
    return is_there(own_address_) || std::ranges::any_of(groups_, [&](const auto& group) {
               return std::ranges::any_of(*group->members(), is_there);
           });
}

void CollectiveEndpoint::read_service_socket(Nanoseconds time) {
    service_read_at_ = time;
    const unsigned max = service_pace_.may_read(groups_.any_joining(), busy_groups_ > 0, time);
    const auto foreign = [&] { return joins.suspicious_datagrams() + secrets.foreign_datagrams(); };
    const std::uint64_t foreign_before = foreign();
    const std::size_t count = service_socket.receive(max, [&](Bytes bytes, const group::Source& source) {
        // A lost hello is repeated. Echoes are time measurements, so each datagram needs the current time.
        provider::succeeds([&] {
            if (!secrets.on_datagram(bytes, source, time)) joins.on_datagram(bytes, source, monotonic_now());
        });
    });
    service_pace_.has_read(count, max, foreign() > foreign_before, time);
}

void CollectiveEndpoint::receive_multicasts(Nanoseconds time) {
    if (!multicast || groups_.empty()) return;
    // Two batches at a time: enough to keep up, few enough to let all other work have its turn.
    for (int batch = 0; batch < 2; ++batch) {
        const std::size_t taken = multicast.transport().receive(
            time, [&](MutableBytes bytes, const transport::SocketAddress& source) {
                on_datagram(bytes, source, time);
            });
        if (taken < transport::MulticastTransport::kBatch) break;
    }
}

// Groups share addresses and sockets. The key in the header identifies the group.
void CollectiveEndpoint::on_datagram(MutableBytes bytes, const transport::SocketAddress& source,
                                     Nanoseconds time) {
    if (bytes.size() < wire::kHeaderBytes) {
        ++groups_.strays().bad_packet;
        return;
    }
    Group* const group = groups_.find_keyed(wire::peek_key(bytes));
    if (group == nullptr)
        ++groups_.strays().foreign_group;
    else
        group->within(time, [&] { group->on_datagram(bytes, source, time); });
}

bool CollectiveEndpoint::busy() const {
    return busy_groups_ > 0 || messenger->under_way() > 0 || groups_.any_busy();
}

void CollectiveEndpoint::report_lost(fi_addr_t peer, int error, std::string_view reason, Nanoseconds time) {
    for (auto& group : groups_)
        group->within(time, [&] { group->core().on_peer_lost(peer, error, std::string(reason)); });
}

// The messenger may hold more messages and must repost its buffers, so this must not throw.
void CollectiveEndpoint::on_message(MutableBytes message) {
    const Nanoseconds time = monotonic_now();
    foreign_pace_.received(time);
    const auto take = [&] { dispatch(message, time); };
    // A second try, because memory may be available again. A group handles exceptions in its own work, so
    // only reading the message can throw here.
    if (provider::succeeds(take) || provider::succeeds(take)) return;
    // The lost message belonged to a join, which would wait for it in vain.
    for (const auto& group : groups_)
        if (group->core().state() == group::Group::State::hello) {
            group->wake();
            group->core().break_down(FI_ENOMEM, time);
        }
}

void CollectiveEndpoint::dispatch(MutableBytes message, Nanoseconds time) {
    if (wire::peek_list(message)) {
        // False: no join here has this list, or the tag is invalid.
        if (!joins.on_join_message(message, time)) ++foreign_messages_;
        return;
    }
    Group* const group =
        message.size() < wire::kHeaderBytes ? nullptr : groups_.find_keyed(wire::peek_key(message));
    if (group == nullptr)
        // The group is gone, or the sender is not a member.
        ++foreign_messages_;
    else
        group->within(time, [&] { group->core().on_message(message, time); });
}

void CollectiveEndpoint::on_send_error(fi_addr_t peer, int error) {
    provider::log_line(provider::Level::info,
                       "sending a message to peer {} of the private endpoint failed: {}; groups with this "
                       "peer count it as lost",
                       peer, fi_strerror(error));
    std::string reason;
    provider::succeeds([&] { reason = fmt::format("a message to it failed: {}", fi_strerror(error)); });
    report_lost(peer, error, reason, monotonic_now());
}

Nanoseconds CollectiveEndpoint::next_deadline() const {
    Nanoseconds next = std::min(watch.next_deadline(), groups_.next_deadline());
    if (multicast) next = std::min(next, multicast.transport().next_deadline());
    if (busy_groups_ > 0 && listens_at_) next = std::min(next, foreign_pace_.next_look());
    return next;
}

// Lets the service socket end a sleep, except during a pause (ServicePace). Returns the end of the pause, or
// kNever if there is none.
Nanoseconds CollectiveEndpoint::set_service_wakes() {
    const Nanoseconds time = monotonic_now();
    const Nanoseconds until = service_pace_.rests_until(groups_.any_joining(), time);
    const bool wakes = until <= time;
    if (wakes != service_wakes_) wait_set.set_wakes(service_socket.descriptor(), wakes);
    service_wakes_ = wakes;
    return wakes ? kNever : until;
}

bool CollectiveEndpoint::prepare_wait(bool may_pause) {
    progress(true);
    if (multicast && !multicast.transport().prepare_wait()) return false;
    if (!messenger->prepare_wait(may_pause)) return false;
    const Nanoseconds next = std::min(next_deadline(), set_service_wakes());
    slept_ = next > monotonic_now() && wait_set.set_alarm(next);
    return slept_;
}

void CollectiveEndpoint::keep_alarm() {
    if (!endpoint.has_sleepers()) return;
    wait_set.bring_forward(messenger->must_poll() ? Nanoseconds{} : next_deadline());
}

int CollectiveEndpoint::close_group(Group& group) {
    const auto lock = endpoint.lock();
    const Nanoseconds time = monotonic_now();
    int rc = 0;
    group.within(time, [&] { rc = group.close(time); });
    if (rc != 0) return rc;
    groups_.forget_token(group);
    remove_done();
    messenger->flush_queue();
    keep_alarm();
    return 0;
}

void CollectiveEndpoint::remove_done() noexcept {
    for (std::size_t i = 0; i < groups_.ready().size();) {
        Group& group = *groups_.ready()[i];
        if (!group.core().done()) {
            ++i;
            continue;
        }
        group.leave_joins();
        groups_.remove(group);
        report_due = true;
    }
}

std::optional<std::uint64_t> CollectiveEndpoint::counter(std::string_view name) const {
    engine::Counters counters;
    group::LevelCounters levels;
    groups_.sum_counters(counters, levels);
    for (const engine::NamedCounter& one : engine::kCounters)
        if (name == one.name) return counters.*one.member;
    for (const group::NamedLevelCounter& one : group::kLevelCounters)
        if (name == one.name) return levels.*one.member;
    if (name == "turns") return turns_;
    if (name == "group_visits") return visits_;
    return {};
}

bool CollectiveEndpoint::wants_report(Nanoseconds time) {
    if (time < next_report_) return false;
    next_report_ = time + kReportInterval;
    return report_due || (report_ && report_->is_watched());
}

// Writes the report for mcastcoll-topo. The rate is limited, because a program may join thousands of groups.
// The report is optional, so only the first error is logged.
void CollectiveEndpoint::write_report() {
    report_due = false;
    if (report_given_up_) return;
    topology::Report report;
    engine::Counters counters;
    group::LevelCounters levels;
    groups_.sum_counters(counters, levels);
    report.counters = nonzero(counters, levels);
    for (const auto& group : groups_) {
        if (!group->core().formed() || report.groups.size() == kMaxReported) continue;
        report.groups.push_back(group->core().report());
        counters = {}, levels = {};
        group->add_counters(counters, levels);
        report.groups.back().counters = nonzero(counters, levels);
    }
    Result<void> written;
    if (!report_) {
        static std::atomic<unsigned> parts{0};  // each endpoint of a process has its own file
        if (auto opened = topology::JobReport::open(parts++)) {
            report_.emplace(std::move(opened).value());
            // One process removes the files of dead processes for all of its host.
            const auto led = [](const topology::ReportedGroup& group) { return !group.places.empty(); };
            if (std::ranges::any_of(report.groups, led)) report_->remove_dead();
        } else {
            written = opened.error();
        }
    }
    if (written) written = report_->write(report);
    if (written) return;
    report_given_up_ = true;
    provider::log_line(provider::Level::info, "mcastcoll-topo cannot show this process: {}",
                       written.error().message);
}

}  // namespace mcastcoll::ofi
