#include "engine/checkpoint.h"

namespace mcastcoll::engine {

RankList Watermark::behind(std::uint64_t finished) const {
    RankList late;
    for (std::uint32_t i = 0; i < children_.count; ++i)
        if (finished_[i] < finished) late.add(children_.ranks[i]);
    return late;
}

std::uint64_t Watermark::agree(std::uint64_t own) {
    for (std::uint32_t i = 0; i < children_.count; ++i) own = std::min(own, finished_[i]);
    if (own <= up_told_) return 0;
    if (parent_ != kNoRank) {
        up_ = own;
        return 0;
    }
    up_told_ = up_ = own;
    tell_down(own);
    return own;
}

bool Watermark::take(std::uint64_t told, bool verdict_known, Nanoseconds now) {
    if (told <= down_) return false;
    if (!verdict_known) {
        parked_ = std::max(parked_, told);
        return false;
    }
    if (awaited_since_ != kNever) waits_.sample(now - awaited_since_);
    tell_down(told);
    return true;
}

std::uint64_t Watermark::take_parked() {
    if (parked_ <= down_) return 0;
    tell_down(parked_);
    return parked_;
}

void Watermark::await(Nanoseconds now, Nanoseconds least, Nanoseconds most) {
    if (parent_ == kNoRank || ask_at_ != kNever || asked_ > opened_) return;
    ask_at_ = now + waits_.deadline(least, most);
    awaited_since_ = now;
}

// Once for each: whoever was asked answers as soon as it knows.
void Watermark::ask() {
    ask_at_ = kNever;
    if (asked_ > opened_) return;
    asked_ = opened_ + 1;
    ask_due_ = parent_ != kNoRank;
}

void Watermark::on_ask(std::uint32_t child, std::uint64_t above) {
    // An older question may come after a newer one.
    if ((child_asks_ >> child & 1) != 0) above = std::max(above, child_asks_above_[child]);
    child_asks_above_[child] = above;
    child_asks_ |= 1U << child;
    if (opened_ <= above) ask();  // onward
}

void Checkpoint::await() {
    const std::int64_t round_trip = core_.round_trip.mean().value;
    watermark_.await(core_.now, std::max(core_.config.least_silence, Nanoseconds{2 * round_trip}),
                     std::max(core_.config.most_silence, Nanoseconds{8 * round_trip}));
}

void Checkpoint::on_up(const wire::Header& header) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity) return;
    // What everybody had finished when the child began its last operation, this member had, too.
    if (number_of(header.operation) > core_.slots.first_open() + core_.slots.size())
        return drop(core_.counters.unexpected_kind);
    watermark_.on_up(child, number_of(header.operation));
    core_.unsettled = true;
}

void Checkpoint::on_ask(const wire::Header& header) {
    const std::uint32_t child = core_.child_index(header.sender);
    if (child == kMaxArity) return drop(core_.counters.bad_sender);
    watermark_.on_ask(child, number_of(header.operation));
}

void Checkpoint::on_told(const wire::Header& header, Rank teller) {
    const std::uint64_t watermark = number_of(header.operation);
    if (header.sender != teller || watermark > core_.slots.first_open())
        return drop(core_.counters.unexpected_kind);
    // The verdict that it was told with may be on its way.
    const std::uint32_t verdict = index_of(header.fragment);
    const bool known = verdict <= core_.verdicts.version();
    if (watermark_.take(watermark, known, core_.now)) raise(watermark);
    if (!known) parked_for_ = std::max(parked_for_, verdict);
}

// Operations up to a window above this watermark may be begun: it was told, not just learnt from somebody
// who was, and with it the verdict that they need.
void Checkpoint::raise(std::uint64_t watermark) {
    core_.release_below(watermark);
    watermark_.rise_to(std::min(watermark, core_.slots.first_kept()));
    core_.unsettled = true;
}

// A checkpoint ends with its last operation, or earlier where many bytes are kept: the same few retransmit
// buffers are used again, which are in the cache. Members need not end it after the same operation.
void Checkpoint::follow_finished() {
    const std::uint64_t finished = core_.slots.first_open();
    const bool full = core_.config.repair != Repair::sync &&
                      core_.kept_bytes - kept_until_ >= core_.config.checkpoint_bytes;
    const std::uint64_t reached = full ? finished : finished - finished % core_.config.checkpoint_interval();
    if (reached <= reached_) return;
    reached_ = reached;
    kept_until_ = core_.kept_bytes;
}

void Checkpoint::settle() {
    if (core_.phase != Phase::active) return;
    if (parked_for_ <= core_.verdicts.version())
        if (const std::uint64_t parked = watermark_.take_parked(); parked != 0) raise(parked);
    follow_finished();
    if (const std::uint64_t agreed = watermark_.agree(reached_); agreed != 0) {
        watermark_.set_cast_due(core_.config.repair == Repair::sync && core_.graph().audible(core_.self()));
        raise(agreed);
    }
    if (core_.idle()) core_.departure.on_idle();
}

// Children that hear the verdict need no message.
bool Checkpoint::hears(Rank child) const {
    return core_.config.repair == Repair::sync && core_.graph().can_hear(rank_of(0), child);
}

void Checkpoint::on_leave_up(const wire::Header& header) {
    const std::uint32_t child = core_.child_of(header);
    if (child == kMaxArity) return;
    core_.departure.on_child_left(child);
    core_.unsettled = true;
}

void Checkpoint::on_leave_down(const wire::Header& header) {
    if (header.sender != core_.parent || !core_.departure.on_everybody_left())
        core_.fail(header.sender, EPROTO);
}

bool Checkpoint::make_multicast(Effect& effect) {
    core_.packet(effect, wire::Kind::watermark_cast, operation_of(watermark_.to_cast()),
                 core_.verdicts.version());
    watermark_.set_cast_due(!core_.take_target(cast_target_, effect));
    return true;
}

bool Checkpoint::make_message(Effect& effect) {
    Watermark::Word word;
    if (watermark_.next(word, [this](Rank child) { return hears(child); })) {
        core_.counters.floor_asks_sent += word.kind == wire::Kind::watermark_ask;
        const bool down = word.kind == wire::Kind::watermark_down;
        return core_.message(effect, word.kind, word.to, operation_of(word.number),
                             down ? core_.verdicts.version() : 0);
    }
    if (core_.departure.next(word.kind, word.to))
        return core_.message(effect, word.kind, word.to, operation_of(core_.slots.next()));
    if (core_.departure.over() && core_.phase == Phase::active) {
        core_.phase = Phase::left;
        core_.notices.left = true;
    }
    return false;
}

}  // namespace mcastcoll::engine
