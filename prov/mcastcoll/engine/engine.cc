#include "engine/engine.h"

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::engine {

Engine::Engine(const GroupConfig& config)
    : config_(config),
      tree_children_(tree_children(config.self, config.tree_arity, config.members)),
      tree_parent_(tree_parent(config.self, config.tree_arity)),
      graph_(config.members),
      stash_(std::size_t{config.operation_slots} * config.stash_bytes),
      early_memory_(std::size_t{config.early_buffers} * config.initial_window * config.fragment_bytes),
      pending_(config.pending_operations),
      completions_(2 * std::size_t{config.operation_slots} + config.pending_operations),
      ready_(config.operation_slots),
      is_ready_(config.members),
      has_voted_(config.members),
      heard_(config.members),
      pongs_(16),
      round_trip_(config.initial_rtt),
      first_arrival_(config.initial_rtt),
      arrival_gap_(config.initial_rtt),
      pushes_(2 * std::size_t{config.operation_slots}),
      watched_(config.members),
      watches_(config.members) {
    assert(index_of(config.self) < config.members);
    assert(config.stash_bytes >= config.fragment_bytes);
    assert(std::has_single_bit(config.operation_slots) && config.operation_slots >= 64);
    assert(config.stash_bytes <= std::uint64_t{config.window} * config.fragment_bytes);
    assert(config.message_bytes >= wire::kHeaderBytes + config.fragment_bytes);
    assert(config.message_bytes >= wire::kHeaderBytes + config.window / 8);
    assert(config.operation_slots % config.checkpoint_every == 0);
    assert(config.tree_arity <= kMaxArity && config.large_tree_arity <= kMaxArity);
    for (std::uint32_t i = 0; i < config.early_buffers; ++i)
        free_early_.push_back(early_memory_.data() +
                              std::size_t{i} * config.initial_window * config.fragment_bytes);
    slots_.reserve(config.operation_slots);
    for (std::uint32_t i = 0; i < config.operation_slots; ++i) {
        slots_.emplace_back(
            config, MutableBytes(stash_).subspan(std::size_t{i} * config.stash_bytes, config.stash_bytes));
        slots_.back().id = operation_of(i);
    }
    ask_bytes_.resize(slots_.front().have.capacity() / 8);
    vote_bytes_.resize((config.members + 7) / 8);
    verdict_bytes_.resize(2 * vote_bytes_.size());
    if (config.self == rank_of(0)) votes_.assign(config.members, std::vector<bool>(config.members));
}

Result<void> Engine::submit(const Operation& operation, Nanoseconds now) {
    if (phase_ == Phase::failed) return Error{error_, "the group has failed"};
    if (closing_) return Error{ESHUTDOWN, "the group is closed"};
    if (index_of(operation.root) >= config_.members)
        return Error{EINVAL, "the root is not a rank of the group"};
    if (operation.bytes / config_.fragment_bytes >= UINT32_MAX / 2)
        return Error{EMSGSIZE, "the message is too long"};
    if (completions_.size() + outstanding() >= 2 * slots_.size() + config_.pending_operations)
        return Error{EAGAIN, "too many completions have not been taken"};
    if (!pending_.push(operation)) return Error{EAGAIN, "too many operations are in flight"};
    ++counters_.operations_submitted;
    begin_pending(now);
    return {};
}

void Engine::begin_pending(Nanoseconds now) {
    now_ = now;
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    while (phase_ == Phase::active && !pending_.empty() && next_id_ < floor_ + slots_.size()) {
        const Operation operation = pending_.front();
        pending_.pop();
        begin(operation, now);
    }
}

// The slot of an operation that is at most a window away, or null, counted, when the operation is over or too
// far ahead.
Slot* Engine::claim(OperationId id) {
    const std::uint64_t number = number_of(id);
    if (number < floor_) {
        ++counters_.stale_operation;
        return nullptr;
    }
    if (number - floor_ >= slots_.size()) {
        // The sender may only be there when everybody has finished what used the slot before: we learn the
        // floor from it.
        const std::uint64_t implied_floor = number - slots_.size() + 1;
        if (implied_floor > first_open_) {
            ++counters_.future_operation;
            return nullptr;
        }
        advance_floor(implied_floor, now_);
    }
    Slot& slot = slot_at(number);
    if (slot.id != id) slot.reset(id);
    return &slot;
}

void Engine::begin(const Operation& operation, Nanoseconds now) {
    Slot& slot = *claim(operation_of(next_id_++));
    assert(slot.state == SlotState::vacant || slot.state == SlotState::early);
    const bool misled = (slot.length_known && slot.bytes != operation.bytes) ||
                        (slot.early_root != kNoRank && slot.early_root != operation.root);
    if (misled) {  // what came before the post was for something else: take it again from the supplier, who
                   // will object
        ++counters_.bad_fragment;
        slot.base = slot.revealed = 0;
        slot.have.clear_all();
    }
    slot.operation = operation;
    adopt_early(slot, !misled);
    slot.state = SlotState::active;
    slot.posted_at = now;
    slot.length_known = true;
    slot.bytes = operation.bytes;
    slot.fragments = config_.fragments(operation.bytes);

    slot.supplier = graph_.supplier(operation.root, config_.self, arity(slot));
    slot.expect_clients(graph_.clients(operation.root, config_.self, arity(slot)));
    slot.report_to = graph_.report_parent(operation.root, config_.self, config_.tree_arity);
    slot.report_children = graph_.report_children(operation.root, config_.self, config_.tree_arity);
    mark_ready(slot);

    const bool root = slot.is_root(config_.self);
    if (operation.kind == OperationKind::barrier) {
        check_gather(slot, now);
    } else if (root) {
        if (!is_large(slot)) {
            if (slot.bytes > 0) std::memcpy(slot.stash.data(), operation.buffer, slot.bytes);
            slot.stashed = true;
        }
        slot.base = slot.fragments;
        on_all_here(slot, now);
    }
    if (root) return;
    begin_receiving(slot, now);
    // What a supplier sent unasked was thrown away with the rest: only asking brings it, or its objection,
    // again.
    if (misled && slot.state == SlotState::active) request(slot, slot.fragments);
}

void Engine::begin_receiving(Slot& slot, Nanoseconds now) {
    if (slot.complete_here()) return on_all_here(slot, now);
    update_report(slot);
    const bool large = is_large(slot);
    const bool hears = graph_.hears(slot.operation.root, config_.self);
    if (!hears || (config_.repair == Repair::push && large) || silent_operations_ >= kSilentEnough) {
        // The chain is all there is, or flows anyway. Small messages are pushed to the deaf, and by the push
        // policy.
        slot.chained = true;
        if (large || (hears && config_.repair == Repair::pull) || slot.base < slot.revealed)
            request(slot, slot.fragments);
    } else if (config_.repair == Repair::push && !large) {
        slot.ask_at = kNever;  // the ring predecessor is certain to hand it on
    } else if (slot.base < slot.revealed) {
        slot.ask_at = now + gap_delay();
    } else {
        slot.ask_at = now + silence_delay();
    }
}

void Engine::finish(Slot& slot, int status) {
    assert(slot.state == SlotState::active);
    slot.state = SlotState::finished;
    slot.ask_at = kNever;
    slot.ask_due = false;
    const bool heard_nothing = !slot.heard_ever && graph_.hears(slot.operation.root, config_.self);
    if (heard_nothing && silent_operations_ < kSilentEnough) ++silent_operations_;
    if (slot.is_root(config_.self) && is_large(slot)) in_flight_ -= slot.next_multicast - slot.acknowledged;
    complete(slot.operation.cookie, status);
    while (first_open_ < next_id_ && slot_at(first_open_).state == SlotState::finished) ++first_open_;
    check_floor(now_);
    check_leave();
}

void Engine::complete(std::uint64_t cookie, int status) {
    ++(status == 0 ? counters_.operations_completed : counters_.operations_failed);
    [[maybe_unused]] const bool queued = completions_.push({cookie, status});
    assert(queued);
}

Nanoseconds Engine::next_deadline() const {
    if (phase_ == Phase::failed || phase_ == Phase::left) return kNever;
    Nanoseconds next = std::min({watch_at_, probe_at_, vote_at_});
    if (!pushes_.empty()) next = std::min(next, pushes_.front().at);
    for (std::uint64_t id = first_open_; id < next_id_; ++id)
        if (slot_at(id).state == SlotState::active) next = std::min(next, slot_at(id).ask_at);
    return next;
}

void Engine::on_timeout(Nanoseconds now) {
    now_ = now;
    if (phase_ == Phase::failed || phase_ == Phase::left) {
        watch_at_ = probe_at_ = vote_at_ = kNever;
        return;
    }
    if (probe_at_ <= now) {
        ++probes_due_;
        probe_at_ = probes_sent_ + probes_due_ < config_.probes ? now + config_.probe_interval : kNever;
    }
    if (vote_at_ <= now) cast_vote(now);
    for (std::uint64_t id = first_open_; id < next_id_; ++id) {
        Slot& slot = slot_at(id);
        if (slot.state == SlotState::active && slot.ask_at <= now) on_ask_timer(slot, now);
    }
    while (!pushes_.empty() && pushes_.front().at <= now) {
        Slot& slot = slot_at(number_of(pushes_.front().operation));
        if (slot.id == pushes_.front().operation) supply_all(slot, true);
        pushes_.pop();
    }
    if (watch_at_ <= now) scan_watches(now);
}

void Engine::check_invariants() const {
    assert(floor_ <= first_open_ && first_open_ <= next_id_ && next_id_ <= floor_ + slots_.size());
    std::uint64_t in_flight = 0;
    for (std::uint64_t id = floor_; id < next_id_; ++id) {
        const Slot& slot = slot_at(id);
        if (phase_ == Phase::active) assert(number_of(slot.id) == id && slot.state >= SlotState::active);
        assert(slot.base <= slot.fragments && slot.acknowledged <= slot.fragments);
        if (slot.state == SlotState::active && is_large(slot) && slot.is_root(config_.self))
            in_flight += slot.next_multicast - slot.acknowledged;
    }
    if (phase_ == Phase::active) assert(in_flight == in_flight_ && in_flight <= config_.window);
}

}  // namespace mcastcoll::engine
