#include "ofi/group.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ofi/live_station.h"
#include "ofi/message_form.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {

Group::Group(LiveStation& station, JoinPlan plan)
    : station_(station),
      plan_(std::move(plan)),
      join_(plan_.id, plan_.self, plan_.members.size(), plan_.deadline, *this) {
    static fi_ops operations = {sizeof(fi_ops), &Group::close_mc, nullptr, nullptr,
                                nullptr,        nullptr,          nullptr};
    // libfabric calls through every pointer it finds.
    operations.bind = [](fid*, fid*, std::uint64_t) { return -FI_ENOSYS; };
    operations.control = [](fid*, int, void*) { return -FI_ENOSYS; };
    operations.ops_open = &Group::open_operations;
    mc_.fid.fid.fclass = FI_CLASS_MC;
    mc_.fid.fid.context = plan_.context;
    mc_.fid.fid.ops = &operations;
    mc_.fid.fi_addr = plan_.token;
    mc_.group = this;
}

Group::~Group() = default;

int Group::close_mc(fid* object) noexcept {
    Group* group = reinterpret_cast<McFid*>(object)->group;
    return guard([&] { return group->station_.close_group(*group); });
}

// The public extension, mcastcoll/mcastcoll.h.
int Group::open_operations(fid*, const char* name, std::uint64_t flags, void** operations, void*) noexcept {
    static fi_mcastcoll_group_ops group_operations = {sizeof(fi_mcastcoll_group_ops),
                                                      &Group::get_settings,
                                                      &Group::run,
                                                      &Group::advice,
                                                      &Group::get_shape,
                                                      &Group::get_asked};
    if (name == nullptr || operations == nullptr || flags != 0) return -FI_EINVAL;
    if (std::strcmp(name, FI_MCASTCOLL_GROUP_OPS) != 0) return -FI_ENOSYS;
    *operations = &group_operations;
    return 0;
}

int Group::get_settings(fid_mc* mc, fi_mcastcoll_group_settings* settings) noexcept {
    if (mc == nullptr || settings == nullptr) return -FI_EINVAL;
    const Group& group = *reinterpret_cast<McFid*>(mc)->group;
    const auto lock = group.station_.lock();
    if (!group.joined_) return -FI_EOPBADSTATE;
    const GroupSettings& agreed = group.agreed_;
    settings->repair = static_cast<int>(agreed.repair);
    settings->root_sync = static_cast<int>(agreed.root_sync);
    settings->root_delay_us = agreed.root_delay_us;
    settings->channels = agreed.channels;
    return 0;
}

int Group::get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept {
    if (mc == nullptr || shape == nullptr) return -FI_EINVAL;
    const Group& group = *reinterpret_cast<McFid*>(mc)->group;
    const auto lock = group.station_.lock();
    if (!group.joined_) return -FI_EOPBADSTATE;
    shape->members = group.placement_->members();
    shape->hosts = static_cast<unsigned>(group.placement_->hosts());
    shape->sites = static_cast<unsigned>(group.placement_->sites().size());
    return 0;
}

int Group::get_asked(fid_mc* mc, std::uint64_t* times) noexcept {
    if (mc == nullptr || times == nullptr) return -FI_EINVAL;
    const Group& group = *reinterpret_cast<McFid*>(mc)->group;
    const auto lock = group.station_.lock();
    if (!group.joined_) return -FI_EOPBADSTATE;
    const engine::Counters counters = group.engine_ ? group.engine_->counters() : engine::Counters{};
    *times = counters.asks_received + counters.nacks_received;
    return 0;
}

std::string Group::name() const {
    return fmt::format("group {:x} of {}", plan_.id.list_hash & 0xffffff, plan_.members.size());
}

ssize_t Group::submit(const Request& request, int* over, Nanoseconds now) {
    if (!joined_) return ended_ ? -FI_EOTHER : -FI_EOPBADSTATE;
    if (closed_) return -FI_ESHUTDOWN;
    if (in_team_ || free_pending_.empty()) return -FI_EAGAIN;
    if (over == nullptr && !station_.reserve_completion()) return -FI_EAGAIN;
    const std::uint32_t cookie = free_pending_.back();
    int refused = 0;
    const int thrown = guard([&] {
        refused = conductor_->submit({.kind = request.kind,
                                      .root = static_cast<std::uint32_t>(request.root),
                                      .buffer = static_cast<std::byte*>(request.buffer),
                                      .input = static_cast<const std::byte*>(request.input),
                                      .bytes = request.bytes,
                                      .combiner = request.combiner,
                                      .cookie = cookie},
                                     now);
        return 0;
    });
    if (thrown != 0) refused = give_back(cookie, -thrown, now);
    if (refused != 0) {
        if (over == nullptr) station_.release_completion();
        return -refused;
    }
    free_pending_.pop_back();
    pending_[cookie] = {request.context, request.flags, over, request.copies};
    // What is sent is where it belongs.
    if (request.copies && request.kind == Kind::broadcast && request.root == index_of(plan_.self))
        request.copies->targets.clear();
    if (outstanding_++ == 0) moved_at_ = now;
    // From here on it is open, and what goes wrong is told by its completion.
    if (const int later = guard([&] { return explain_selection(), move(now), 0; }); later != 0)
        break_down(-later, now);
    return 0;
}

// What threw when it was submitted may have begun or not: the group ends, and with it whatever has begun. The
// caller hears that it was refused.
int Group::give_back(std::uint32_t cookie, int error, Nanoseconds now) {
    int ended = 0;
    free_pending_.pop_back();
    pending_[cookie] = {nullptr, 0, &ended, nullptr};
    ++outstanding_;
    break_down(error, now);
    if (std::exchange(pending_[cookie], {}).over == nullptr) return error;  // it had begun, and has ended
    free_pending_.push_back(cookie);
    --outstanding_;
    return error;
}

int Group::close(Nanoseconds now) {
    if (outstanding_ > 0 || in_team_) return -FI_EBUSY;
    closed_ = true;
    shortcut_ = false;
    if (engine_) engine_->close(now);
    if (formed()) move(now);
    if (greeting() && !leads()) station_.remember_ended(plan_.id, plan_.members.front());
    ended_ = true;
    return 0;
}

bool Group::done() const {
    if (!closed_) return false;
    if (!engine_) return true;
    const engine::Phase phase = engine_->phase();
    return phase == engine::Phase::left || (phase == engine::Phase::failed && engine_->failure_told());
}

bool Group::busy() const {
    if (!formed()) return !ended_;
    if (unfinished_) return true;
    if (error_ != 0) return false;
    if (engine_ && engine_->phase() == engine::Phase::left) return false;
    return (!joined_ && !ended_) || (closed_ && engine_) || outstanding_ > 0;
}

Nanoseconds Group::next_deadline() const {
    if (!formed()) return ended_ ? kNever : join_.next_deadline();
    if (unfinished_) return Nanoseconds{};
    Nanoseconds next = std::min({conductor_->next_deadline(), attach_at_, stall_at()});
    if (!joined_ && !ended_) next = std::min(next, plan_.deadline);
    return next;
}

void Group::pump(Nanoseconds now) {
    touched_ = false;
    if (!formed()) {
        if (ended_) return;
        join_.on_timeout(now);
        return follow_join(now);
    }
    if (!joined_ && !ended_ && plan_.deadline <= now) fail_group(FI_ETIMEDOUT, kNoRank, now);
    if (engine_ && engine_->next_deadline() <= now) engine_->on_timeout(now);
    for (const auto& [rank, error] : losses_.take_found()) on_lost(rank, error, now);
    check_departed(now);
    if (attach_at_ <= now) make_team(now);
    move(now);
    // Others of this host may have ended the group while nothing was open here.
    if (host_level_ && error_ == 0 && host_level_->team().failure() != 0)
        fail_group(host_level_->team().failure(), lost_here(), now);
    check_stall(now);
    if (!engine_) return;
    news_.tell(*engine_, placement_->segment(), [this](const std::string& sentence) { explain(sentence); });
}

void Group::on_message(Bytes message, Nanoseconds now) {
    touched_ = true;
    if (!formed() || message.size() < wire::kHeaderBytes) return;
    if (levels::SiteLevel::takes(wire::peek_kind(message)))
        site_level_->on_message(message, now);
    else if (levels::ExchangeLevel::takes(wire::peek_kind(message)) && exchange_level_)
        exchange_level_->on_message(message, now);
    else if (engine_)
        engine_->on_message(message, now);
}

// Who claims to be a member must send from that member's address, and from the port its first probe came
// from.
void Group::on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now) {
    touched_ = true;
    if (!engine_) return;
    const std::size_t sender = index_of(wire::peek_sender(bytes));
    const auto& segment = placement_->segment();
    if (sender >= segment.size() || sender == placement_->segment_self())
        return engine_->on_packet(bytes, now);
    Member& member = members_[segment[sender]];
    const bool port_known = member.source.port() != 0;
    if (!member.source.same_host(source) || (port_known && member.source.port() != source.port())) {
        ++wrong_source_;
        return;
    }
    const std::uint64_t valid_before = engine_->counters().datagrams_received;
    engine_->on_packet(bytes, now);
    if (!port_known && engine_->counters().datagrams_received > valid_before) member.source = source;
}

// What one level got may be what another waits for, until nothing more comes of it. Not for ever: other
// processes may go on bringing more, and the caller has other things to do.
void Group::move(Nanoseconds now) {
    if (!formed()) return;
    constexpr int kMostRounds = 16;
    unfinished_ = true;
    for (int round = 0; unfinished_ && round < kMostRounds; ++round) {
        bool again = carry_out(now);
        if (conductor_->progress(now)) {
            again = true;
            moved_at_ = now;
        }
        if (move_messages(now)) again = true;
        unfinished_ = again;
    }
    take_completions(now);
    if (!joined_ && !ended_) check_formed(now);
}

// The engine's effects; true if there were any.
bool Group::carry_out(Nanoseconds now) {
    if (!engine_) return false;
    engine::Effect effect;
    bool any = false;
    for (;; any = true) {
        const engine::Allowed allowed{.multicast = !queue_.blocked(),
                                      .message = station_.messenger().can_send()};
        if (!engine_->poll_effects(allowed, effect)) break;
        carry_out(effect, now);
    }
    if (!outlets_.empty()) flush_multicasts();
    return any;
}

void Group::carry_out(const engine::Effect& effect, Nanoseconds now) {
    const auto member = [&](Rank rank) -> Member& { return members_[placement_->segment()[index_of(rank)]]; };
    switch (effect.kind) {
        case engine::Effect::Kind::multicast:
            if (outlets_.empty()) return;
            queue_.add(effect.header, effect.payload, effect.range);
            if (queue_.full()) flush_multicasts();
            return;
        case engine::Effect::Kind::message:
            return station_.messenger().send(member(effect.to).messenger_peer, effect.header, effect.payload);
        case engine::Effect::Kind::gathered:
            return segment_level_->on_gathered(effect.cookie);
        case engine::Effect::Kind::complete:
            return segment_level_->on_complete(effect.cookie, effect.status);
        case engine::Effect::Kind::watch:
            return station_.watch(member(effect.to).messenger_peer, member(effect.to).watch_point, now);
        case engine::Effect::Kind::joined:
            engine_joined_ = true;
            return;
        case engine::Effect::Kind::failed:
            return fail_group(
                effect.status,
                effect.to == kNoRank ? kNoRank : rank_of(placement_->segment()[index_of(effect.to)]), now);
        case engine::Effect::Kind::left:
            return;
    }
}

void Group::flush_multicasts() {
    const int error = queue_.flush(station_.multicast(), outlets_, engine_->config().fragment_bytes);
    // The datagram cannot be sent at all; to the receivers it is lost, and repaired.
    if (error == 0 || send_error_told_) return;
    station_.log(Level::warn, "{}: multicast fails: {}", name(), std::strerror(error));
    send_error_told_ = true;
}

void Group::on_peer_lost(fi_addr_t messenger_peer, int error, const std::string& reason) {
    if (!formed()) return;
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
        if (members_[rank].messenger_peer == messenger_peer) lose(rank_of(rank), error, reason);
}

void Group::lose(Rank rank, int error, const std::string& reason) {
    losses_.add(rank, error, reason);
    touched_ = true;
}

// For the log: who was lost, and how this member knows.
std::string Group::describe_loss(int error, Rank lost) const {
    if (lost == kNoRank) return {};
    const wire::ByteString& bytes = plan_.members[index_of(lost)];
    const auto address = SocketAddress::from_bytes(bytes);
    const std::string at = address ? fmt::format("{}", address.value())
                                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (error == FI_ETIMEDOUT) return fmt::format(" (waited for rank {} at {})", index_of(lost), at);
    const std::string* reason = losses_.reason(lost);
    const char* otherwise = lost == lost_here() ? "its process has ended" : "another member says so";
    return fmt::format(" (lost rank {} at {}: {})", index_of(lost), at,
                       reason != nullptr ? reason->c_str() : otherwise);
}

// The engine tells its members itself, and forgives who has left in peace. So does this: of those that are in
// no engine with this member, whoever has done its share of what is open may close the group and be gone.
void Group::on_lost(Rank rank, int error, Nanoseconds now) {
    const auto& segment = placement_->segment();
    const auto found = std::find(segment.begin(), segment.end(), index_of(rank));
    if (engine_ && found != segment.end())
        return engine_->on_peer_lost(rank_of(static_cast<std::size_t>(found - segment.begin())), error, now);
    if (closed_) return;
    // Where a successor greets it was killed, and has not left in peace.
    const bool succeeded = members_[index_of(rank)].doubt_at != Nanoseconds{};
    if (!joined_ || succeeded) return fail_group(error, rank, now);
    site_level_->lose(index_of(rank));
    if (exchange_level_) exchange_level_->lose(index_of(rank));
    losses_.let_go({rank, error});
}

void Group::check_departed(Nanoseconds now) {
    if (error_ != 0) return;
    const group::Losses::Loss loss = losses_.needed([this](std::uint32_t rank) {
        return site_level_->needs(rank) || (exchange_level_ && exchange_level_->needs(rank));
    });
    if (loss.rank != kNoRank) fail_group(loss.error, loss.rank, now);
}

}  // namespace mcastcoll::ofi
