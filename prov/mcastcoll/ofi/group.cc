#include "ofi/group.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ofi/live_station.h"

namespace mcastcoll::ofi {

Group::Group(LiveStation& station, JoinPlan plan) : station_(station), plan_(std::move(plan)) {
    static fi_ops operations = {sizeof(fi_ops), &Group::close_mc, nullptr, nullptr,
                                nullptr,        nullptr,          nullptr};
    // libfabric calls through every pointer it finds.
    operations.bind = [](fid*, fid*, std::uint64_t) { return -FI_ENOSYS; };
    operations.control = [](fid*, int, void*) { return -FI_ENOSYS; };
    operations.ops_open = [](fid*, const char*, std::uint64_t, void**, void*) { return -FI_ENOSYS; };
    mc_.fid.fid.fclass = FI_CLASS_MC;
    mc_.fid.fid.context = plan_.context;
    mc_.fid.fid.ops = &operations;
    mc_.fid.fi_addr = plan_.token;
    mc_.group = this;
}

Group::~Group() = default;

int Group::close_mc(fid* object) {
    Group* group = reinterpret_cast<McFid*>(object)->group;
    return group->station_.close_group(*group);
}

std::string Group::name() const {
    return fmt::format("group {:x} of {}", plan_.id.list_hash & 0xffffff, plan_.members.size());
}

std::optional<GroupKey> Group::key() const {
    if (!engine_) return {};
    return engine_->config().key;
}

ssize_t Group::submit(engine::OperationKind kind, Rank root, void* buffer, std::size_t bytes,
                      std::uint64_t flags, void* context, Nanoseconds now) {
    if (!joined_) return ended_ ? -FI_EOTHER : -FI_EOPBADSTATE;
    if (index_of(root) >= plan_.members.size() || (bytes > 0 && buffer == nullptr)) return -FI_EINVAL;
    if (free_pending_.empty() || !station_.reserve_completion()) return -FI_EAGAIN;
    const std::uint32_t cookie = free_pending_.back();
    const engine::Operation operation{kind, root, static_cast<std::byte*>(buffer), bytes, cookie};
    if (auto accepted = engine_->submit(operation, now); !accepted) {
        station_.release_completion();
        return -accepted.error().code;
    }
    free_pending_.pop_back();
    pending_[cookie] = {context, flags};
    ++outstanding_;
    carry_out(now);
    return 0;
}

int Group::close(Nanoseconds now) {
    if (outstanding_ > 0) return -FI_EBUSY;
    closed_ = true;
    if (engine_) {
        engine_->close(now);
        carry_out(now);
    }
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
    if (!engine_) return !ended_;
    if (engine_->phase() == engine::Phase::failed || engine_->phase() == engine::Phase::left) return false;
    return !joined_ || closed_ || outstanding_ > 0;
}

Nanoseconds Group::next_deadline() const {
    if (!engine_) return ended_ ? kNever : std::min(greet_at_, plan_.deadline);
    Nanoseconds next = engine_->next_deadline();
    if (!joined_) next = std::min(next, plan_.deadline);
    if (transport_) next = std::min(next, transport_->next_deadline());
    return next;
}

void Group::pump(Nanoseconds now) {
    touched_ = false;
    if (!engine_) {
        if (ended_) return;
        if (plan_.deadline <= now) return end_join(FI_ETIMEDOUT);
        if (greet_at_ <= now) greet(now);
        return;
    }
    if (!joined_ && !ended_ && plan_.deadline <= now) engine_->abort(FI_ETIMEDOUT, now);
    if (transport_) receive(now);
    if (engine_->next_deadline() <= now) engine_->on_timeout(now);
    for (const auto& [rank, error] : lost_) engine_->on_peer_lost(rank, error, now);
    lost_.clear();
    carry_out(now);
}

void Group::receive(Nanoseconds now) {
    // Two batches at a time: enough to keep up, few enough for the other groups to get their turn.
    for (int batch = 0; batch < 2; ++batch) {
        const std::size_t taken = transport_->receive(
            now, [&](Bytes bytes, const SocketAddress& source) { on_datagram(bytes, source, now); });
        if (taken < MulticastTransport::kBatch) break;
    }
}

// Who claims to be a member must send from that member's address, and from the port its first probe came
// from.
void Group::on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now) {
    if (bytes.size() < wire::kHeaderBytes) return engine_->on_packet(bytes, now);  // which counts it
    const std::size_t sender = index_of(wire::peek_sender(bytes));
    if (sender >= members_.size() || sender == index_of(plan_.self)) return engine_->on_packet(bytes, now);
    Member& member = members_[sender];
    const bool port_known = member.source.port() != 0;
    if (!member.source.same_host(source) || (port_known && member.source.port() != source.port())) {
        ++wrong_source_;
        return;
    }
    const std::uint64_t valid_before = engine_->counters().datagrams_received;
    engine_->on_packet(bytes, now);
    if (!port_known && engine_->counters().datagrams_received > valid_before) member.source = source;
}

void Group::carry_out(Nanoseconds now) {
    engine::Effect effect;
    for (;;) {
        const engine::Allowed allowed{.multicast = !backlog_in_use_,
                                      .message = station_.messenger().can_send()};
        if (!engine_->poll_effects(allowed, effect)) break;
        carry_out(effect, now);
    }
    flush_multicasts();
}

void Group::carry_out(const engine::Effect& effect, Nanoseconds now) {
    switch (effect.kind) {
        case engine::Effect::Kind::multicast:
            if (!transport_) return;
            if (outgoing_sent_ == outgoing_count_) outgoing_sent_ = outgoing_count_ = 0;
            outgoing_[outgoing_count_++] = {effect.header, effect.payload};
            if (outgoing_count_ == outgoing_.size()) flush_multicasts();
            return;
        case engine::Effect::Kind::message:
            return station_.messenger().send(members_[index_of(effect.to)].messenger_peer, effect.header,
                                             effect.payload);
        case engine::Effect::Kind::complete: {
            const auto cookie = static_cast<std::uint32_t>(effect.cookie);
            const Pending pending = pending_[cookie];
            free_pending_.push_back(cookie);
            --outstanding_;
            return station_.complete(pending.context, pending.flags, effect.status);
        }
        case engine::Effect::Kind::watch: {
            const Member& member = members_[index_of(effect.to)];
            return station_.watch(member.messenger_peer, member.watch_point, now);
        }
        case engine::Effect::Kind::joined:
            if (ended_) return;
            joined_ = true;
            explain_join();
            return station_.report_join(mc_.fid, 0);
        case engine::Effect::Kind::failed:
            station_.log(
                Level::warn, "{}: failed: {}{}", name(), fi_strerror(effect.status),
                effect.to == kNoRank ? std::string() : fmt::format(" (rank {})", index_of(effect.to)));
            if (!joined_) end_join(effect.status);
            return;
        case engine::Effect::Kind::left:
            return;
    }
}

// Hands the collected multicasts to the kernel. What it cannot take now is copied, because the memory behind
// a payload may be the application's again before the next try; nothing more is collected until it is gone.
void Group::flush_multicasts() {
    if (outgoing_sent_ == outgoing_count_) return;
    const std::size_t count = outgoing_count_ - outgoing_sent_;
    for (std::size_t i = 0; i < count; ++i) {
        const Outgoing& one = outgoing_[outgoing_sent_ + i];
        batch_[i] = {one.header, one.payload};
    }
    std::size_t accepted = transport_->send({batch_.data(), count});
    if (accepted < count) {
        if (const int error = transport_->take_send_error(); error != 0) {
            // The datagram cannot be sent at all; to the receivers it is lost, and repaired.
            if (!send_error_told_)
                station_.log(Level::warn, "{}: multicast fails: {}", name(), std::strerror(error));
            send_error_told_ = true;
            ++accepted;
        }
    }
    outgoing_sent_ += accepted;
    if (outgoing_sent_ == outgoing_count_) {
        backlog_in_use_ = false;
        return;
    }
    if (backlog_in_use_) return;
    const std::size_t room = engine_->config().fragment_bytes;
    if (!backlog_) backlog_.reset(new std::byte[room * outgoing_.size()]);
    for (std::size_t i = outgoing_sent_; i < outgoing_count_; ++i) {
        std::byte* copy = backlog_.get() + i * room;
        Outgoing& one = outgoing_[i];
        if (one.payload.empty()) continue;
        std::memcpy(copy, one.payload.data(), one.payload.size());
        one.payload = Bytes(copy, one.payload.size());
    }
    backlog_in_use_ = true;
}

void Group::on_peer_lost(fi_addr_t messenger_peer, int error) {
    if (!engine_) return;
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
        if (members_[rank].messenger_peer == messenger_peer) lost_.emplace_back(rank_of(rank), error);
    touched_ = true;
}

void Group::add_counters(engine::Counters& sum, MulticastCounters& wire_sum) const {
    if (engine_) {
        engine::Counters own = engine_->counters();
        own.bad_sender += wrong_source_;
        engine::add(sum, own);
    }
    if (!transport_) return;
    const MulticastCounters own = transport_->counters();
    wire_sum.socket_drops += own.socket_drops;
    wire_sum.truncated += own.truncated;
    wire_sum.send_errors += own.send_errors;
    wire_sum.send_would_block += own.send_would_block;
    wire_sum.bytes_sent += own.bytes_sent;
}

}  // namespace mcastcoll::ofi
