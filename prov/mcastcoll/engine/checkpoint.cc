#include "engine/checkpoint.h"

#include <cerrno>

namespace mcastcoll::engine {

RankList Checkpoint::behind() const {
    RankList late;
    for (std::uint32_t i = 0; i < core_.children.count; ++i)
        if (finished_[i] < reached_) late.add(core_.children.ranks[i]);
    return late;
}

void Checkpoint::await() {
    if (core_.parent == kNoRank || request_at_ != kNever || requested_ > opened_) return;
    const std::int64_t round_trip = core_.round_trip.mean().value;
    request_at_ =
        core_.now + waits_.deadline(std::max(core_.config.min_silence, Nanoseconds{2 * round_trip}),
                                    std::max(core_.config.max_silence, Nanoseconds{8 * round_trip}));
    awaited_since_ = core_.now;
}

// Requests each watermark once: the parent answers as soon as the watermark is higher.
void Checkpoint::request() {
    request_at_ = kNever;
    if (requested_ > opened_) return;
    requested_ = opened_ + 1;
    request_due_ = core_.parent != kNoRank;
}

void Checkpoint::on_request(const wire::Header& header) {
    const std::uint32_t child = core_.child_index(header.sender);
    if (child == kMaxArity) return drop(core_.counters.bad_sender);
    std::uint64_t above = number_of(header.operation);
    // Messages may overtake each other: keep the newer request.
    if ((child_requests_ >> child & 1) != 0) above = std::max(above, child_requests_above_[child]);
    child_requests_above_[child] = above;
    child_requests_ |= 1U << child;
    if (opened_ <= above) request();  // forward the request
}

void Checkpoint::on_up(const wire::Header& header) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity) return;
    const std::uint64_t finished = number_of(header.operation);
    // A child begins operations only within a window above the watermark, below which this member has
    // finished all operations.
    if (finished > core_.slots.first_open() + core_.slots.size()) return drop(core_.counters.unexpected_kind);
    finished_[child] = std::max(finished_[child], finished);
    core_.redundancy.on_report(child, unpack_losses(header.total, core_.config.members));
    core_.unsettled = true;
}

void Checkpoint::on_watermark(const wire::Header& header, Rank expected_sender) {
    const std::uint64_t watermark = number_of(header.operation);
    if (header.sender != expected_sender || watermark > core_.slots.first_open())
        return drop(core_.counters.unexpected_kind);
    if (watermark <= down_) return;
    // The map required by this watermark may still be on its way.
    if (const std::uint32_t map_version = index_of(header.fragment);
        map_version > core_.reachability.version()) {
        parked_ = {std::max(parked_.watermark, watermark), std::max(parked_.map_version, map_version)};
        return;
    }
    core_.adopt_losses(unpack_losses(header.total, core_.config.members));
    if (awaited_since_ != kNever) waits_.sample(core_.now - awaited_since_);
    follow(watermark);
}

// Permits operations up to a window above this watermark. Only a watermark that was sent explicitly permits
// operations, because it carries the required map version; a watermark implied by a packet does not.
void Checkpoint::follow(std::uint64_t watermark) {
    down_ = watermark;
    uninformed_.begin();
    core_.release_below(watermark);
    opened_ = std::max(opened_, std::min(watermark, core_.slots.first_kept()));
    request_at_ = awaited_since_ = kNever;
    core_.unsettled = true;
}

// A checkpoint ends with its last operation, or earlier when many bytes are kept, so that a few cached
// retransmit buffers are reused. Members may end a checkpoint after different operations.
void Checkpoint::follow_finished() {
    const std::uint64_t finished = core_.slots.first_open();
    const bool full = core_.config.repair != Repair::sync &&
                      core_.kept_bytes - kept_until_ >= core_.config.checkpoint_bytes;
    const std::uint64_t reached = full ? finished : finished - finished % core_.config.checkpoint_interval();
    if (reached <= reached_) return;
    reached_ = reached;
    kept_until_ = core_.kept_bytes;
}

// Recomputes the progress of this member's subtree. On rank 0 the result is the new watermark.
void Checkpoint::agree() {
    std::uint64_t all = reached_;
    for (std::uint32_t i = 0; i < core_.children.count; ++i) all = std::min(all, finished_[i]);
    if (all <= up_) return;
    up_ = all;
    if (core_.parent != kNoRank) return;
    up_sent_ = all;
    cast_due_ = core_.config.repair == Repair::sync && core_.graph().audible(core_.self());
    core_.adopt_losses(core_.redundancy.subtree());
    follow(all);
}

void Checkpoint::settle() {
    if (core_.phase != Phase::active) return;
    if (parked_.map_version <= core_.reachability.version() && parked_.watermark > down_)
        follow(parked_.watermark);
    follow_finished();
    agree();
    if (core_.idle()) core_.departure.on_idle();
}

void Checkpoint::on_leave_up(const wire::Header& header) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity) return;
    core_.departure.on_child_left(child);
    core_.unsettled = true;
}

void Checkpoint::on_leave_down(const wire::Header& header) {
    if (header.sender != core_.parent || !core_.departure.on_all_left()) core_.fail(header.sender, EPROTO);
}

bool Checkpoint::make_multicast(Effect& effect) {
    core_.packet(effect, wire::Kind::watermark_cast, operation_of(down_), core_.reachability.version(),
                 pack(core_.redundancy.group()));
    cast_due_ = !core_.take_target(cast_target_, effect);
    return true;
}

// Under policy sync, children that receive rank 0's multicast get no message, but may request the watermark.
bool Checkpoint::receives(Rank child) const {
    return core_.config.repair == Repair::sync && core_.graph().can_receive(rank_of(0), child);
}

bool Checkpoint::make_message(Effect& effect) {
    const auto send = [&](wire::Kind kind, Rank to, std::uint64_t number) {
        const bool down = kind == wire::Kind::watermark_down;
        const LossReport losses = down                               ? core_.redundancy.group()
                                  : kind == wire::Kind::watermark_up ? core_.redundancy.subtree()
                                                                     : LossReport{};
        return core_.message(effect, kind, to, operation_of(number), down ? core_.reachability.version() : 0,
                             pack(losses));
    };
    if (up_ > up_sent_) return send(wire::Kind::watermark_up, core_.parent, up_sent_ = up_);
    if (std::exchange(request_due_, false)) {
        ++core_.counters.watermark_requests_sent;
        return send(wire::Kind::watermark_request, core_.parent, opened_);
    }
    for (std::uint32_t i = 0; i < core_.children.count; ++i) {
        if ((child_requests_ >> i & 1) == 0 || opened_ <= child_requests_above_[i]) continue;
        child_requests_ &= ~(1U << i);
        return send(wire::Kind::watermark_down, core_.children.ranks[i], opened_);
    }
    for (Rank child; (child = uninformed_.next()) != kNoRank;)
        if (!receives(child)) return send(wire::Kind::watermark_down, child, down_);
    wire::Kind kind{};
    Rank to{};
    if (core_.departure.next(kind, to)) return send(kind, to, core_.slots.next());
    if (core_.departure.over() && core_.phase == Phase::active) {
        core_.phase = Phase::left;
        core_.notices.left = true;
    }
    return false;
}

}  // namespace mcastcoll::engine
