#include "engine/engine.h"

#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::engine {

namespace {

// Small messages come to the deaf unasked; only when one is much later than usual do they ask.
constexpr std::uint32_t kDeafPatience = 4;

}  // namespace

Engine::Engine(const GroupConfig& config)
    : config_(config),
      tree_children_(tree_children(config.self, config.tree_arity, config.members)),
      tree_parent_(tree_parent(config.self, config.tree_arity)),
      targets_(other_ranges(config)),
      policy_(config),
      root_sync_(config),
      readiness_(tree_children_.count),
      poll_(config_, tree_children_, tree_parent_),
      verdicts_(config_, tree_children_),
      doubts_(config_, tree_parent_ == kNoRank),
      watermark_(tree_children_, tree_parent_),
      departure_(tree_children_, tree_parent_),
      failure_(config.self, config.members),
      slots_(config, tree_children_.count),
      early_buffers_(config.memory, config.early_buffers,
                     std::size_t{config.window} * config.fragment_bytes),
      vectors_(config.memory, std::size_t{config.operation_slots} * tree_children_.count,
               config.most_gathered()),
      piece_(config.fragment_bytes),
      pending_(config.pending_operations),
      notices_(2 * std::size_t{config.operation_slots} + config.pending_operations, config.operation_slots),
      turns_(config.operation_slots),
      pongs_(16),
      // Silence lasts one and a half of it, at least.
      round_trip_(config.initial_rtt, Nanoseconds{config.least_silence.value * 2 / 3}, config.most_silence),
      deadlines_(config_, round_trip_),
      pushes_(2 * std::size_t{config.operation_slots}),
      holds_(2 * std::size_t{config.operation_slots}),
      watches_(std::min(config.members, kMostWatched)) {
    assert(index_of(config.self) < config.members);
    assert(config.range_of.empty() || config.range_of.size() == config.members);
    assert(config.retransmit_bytes >= config.fragment_bytes);
    assert(std::has_single_bit(config.operation_slots) && config.operation_slots >= 8);
    assert(config.retransmit_bytes <= std::uint64_t{config.window} * config.fragment_bytes);
    assert(config.message_bytes >= wire::kHeaderBytes + config.fragment_bytes);
    assert(config.message_bytes >= wire::kHeaderBytes + config.window / 8);
    assert(config.message_bytes >= wire::kHeaderBytes + config.gather_bytes);
    assert(config.checkpoint_interval() >= 1 && config.checkpoint_interval() <= config.most_ahead());
    assert(config.most_ahead() <= config.operation_slots);
    assert(config.tree_arity <= kMaxArity && config.large_tree_arity <= kMaxArity);
    ask_bytes_.resize(slots_.at(0).have.capacity() / 8);
}

Result<OperationId> Engine::submit(const Collective& operation, Nanoseconds now) {
    if (phase_ == Phase::failed) return Error{failure_.error(), "the group has failed"};
    if (departure_.closing()) return Error{ESHUTDOWN, "the group is closed"};
    if (moves_blocks(operation.kind)) return Error{ENOSYS, "blocks are not the engine's"};
    if (index_of(operation.root) >= config_.members)
        return Error{EINVAL, "the root is not a rank of the group"};
    if (operation.bytes / config_.fragment_bytes >= UINT32_MAX / 2)
        return Error{EMSGSIZE, "the message is too long"};
    if (operation.kind == CollectiveKind::barrier && operation.bytes > 0)
        return Error{EINVAL, "a barrier has no bytes"};
    if (reduces(operation.kind))
        if (auto fine = check_reduction(operation); !fine) return fine.error();
    if (notices_.completions() + outstanding() >= 2 * slots_.size() + config_.pending_operations)
        return Error{EAGAIN, "too many completions have not been taken"};
    const OperationId number = next_operation();
    if (!pending_.push(operation)) return Error{EAGAIN, "too many operations are in flight"};
    ++counters_.operations_submitted;
    begin_pending(now);
    return number;
}

void Engine::begin_pending(Nanoseconds now) {
    now_ = now;
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    if (beginning_) return;  // what begins may finish at once and move the watermark
    beginning_ = true;
    while (phase_ == Phase::active && !pending_.empty() &&
           slots_.next() < watermark_.opened() + config_.most_ahead()) {
        const Collective operation = pending_.front();
        pending_.pop();
        begin(operation, now);
    }
    beginning_ = false;
    if (phase_ == Phase::active && !pending_.empty()) await_watermark(now);
}

// The slot of an operation that is at most a window away, or null, counted, when the operation is over or too
// far ahead.
Slot* Engine::claim(OperationId id) {
    const std::uint64_t number = number_of(id);
    if (number < slots_.first_kept()) {
        ++counters_.stale_operation;
        return nullptr;
    }
    if (number >= slots_.end()) {
        // The sender may only be there when everybody has finished what used the slot before: we learn the
        // watermark from it.
        const std::uint64_t implied = number - slots_.size() + 1;
        if (implied > slots_.first_open()) {
            ++counters_.future_operation;
            return nullptr;
        }
        release_below(implied);
    }
    Slot& slot = slots_.at(number);
    if (slot.id != id) {
        for (Contribution& contribution : slot.contributions) vectors_.give_back(contribution.early);
        slot.reset(id);
    }
    return &slot;
}

void Engine::begin(const Collective& operation, Nanoseconds now) {
    Slot& slot = *claim(operation_of(slots_.post()));
    assert(slot.state == SlotState::vacant || slot.state == SlotState::early);
    const bool root = operation.root == config_.self;
    const bool misled = (slot.length_known && (root || slot.bytes != operation.bytes ||
                                               operation.kind == CollectiveKind::reduce)) ||
                        (slot.early_root != kNoRank && slot.early_root != operation.root);
    if (misled) {  // what came before the post was for something else: take it again from the supplier, who
                   // will object
        ++counters_.bad_fragment;
        slot.base = slot.revealed = 0;
        slot.have.clear_all();
    }
    if (config_.members > 1 && round_trip_.wants_ping()) ping_due_ = true;
    slot.operation = operation;
    if (operation.input == nullptr) slot.operation.input = operation.buffer;
    adopt_early(slot, !misled);
    slot.state = SlotState::active;
    slot.posted_at = slot.progress_at = moved_at_ = now;
    slot.length_known = true;
    slot.bytes = operation.kind == CollectiveKind::reduce ? 0 : operation.bytes;
    slot.fragments = config_.fragments(slot.bytes);
    mark_ready(slot);
    if (operation.kind == CollectiveKind::broadcast && slot.told != kNothingTold)
        return fail(kNoRank, EMSGSIZE, true, now);   // others gather
    if (operation.kind == CollectiveKind::reduce) {  // nothing comes down
        slot.base = slot.fragments;
        return begin_gather(slot, now);
    }

    slot.plan = policy_.plan(is_large(slot), number_of(slot.id));
    const SupplyGraph& graph = graph_of(slot);
    slot.supplier = graph.supplier(operation.root, config_.self, arity(slot));
    slot.expect_clients(graph.clients(operation.root, config_.self, arity(slot)));
    slot.report_to = graph.report_parent(operation.root, config_.self, config_.tree_arity);
    slot.report_children = graph.report_children(operation.root, config_.self, config_.tree_arity);

    if (root && !graph.audible(config_.self)) want_beacon(now);
    if (gathers(operation.kind)) {
        begin_gather(slot, now);
    } else if (root) {
        hold(slot, now);
        advance_root(slot, now);
    }
    if (root || slot.state != SlotState::active) return;
    if (operation.kind == CollectiveKind::broadcast) tell_entered(slot);
    begin_receiving(slot, now);
    // What a supplier sent unasked was thrown away with the rest: only asking brings it, or its objection,
    // again.
    if (misled && slot.state == SlotState::active) request(slot, slot.fragments);
}

void Engine::begin_receiving(Slot& slot, Nanoseconds now) {
    if (slot.complete_here()) return on_all_here(slot, now);
    update_report(slot);
    const bool large = is_large(slot);
    const bool hears = graph_of(slot).hears(slot.operation.root, config_.self);
    const bool silent = !hears || doubts_.silent(slot.operation.root);
    // Small messages are handed to the deaf, and by a policy that is patient because of it.
    const bool comes_unasked = !large && (!hears || slot.plan.patience > 1);
    const std::int64_t patience = comes_unasked ? std::max(slot.plan.patience, kDeafPatience) : 1;
    slot.chained = silent || slot.plan.chained;
    if (slot.chained && (!comes_unasked || slot.base < slot.revealed)) return request(slot, slot.fragments);
    const bool hole = !comes_unasked && (slot.base < slot.revealed || later_was_heard(slot));
    slot.ask_at = now + (hole ? deadlines_.gap() : Nanoseconds{patience * deadlines_.silence(slot).value});
    // Somebody has asked already and waits.
    for (std::uint32_t i = 0; i < slot.client_count; ++i)
        if (slot.clients[i].waiting) return ask_onward(slot, now);
}

// True, and the whole operation counts as sent, when something of a later operation of the same root came
// before this one was posted.
bool Engine::later_was_heard(Slot& slot) {
    if (is_large(slot)) return false;
    for (std::uint64_t id = number_of(slot.id) + 1; id < slots_.early_end(); ++id) {
        if (slots_.at(id).id != operation_of(id) || slots_.at(id).early_root != slot.operation.root) continue;
        slot.revealed = slot.fragments;
        return true;
    }
    return false;
}

void Engine::finish(Slot& slot, int status) {
    assert(slot.state == SlotState::active);
    slot.state = SlotState::finished;
    moved_at_ = now_;
    slot.ask_at = kNever;
    slot.ask_due = false;
    if (status == 0 && slot.operation.kind != CollectiveKind::reduce) note_finished(slot, now_);
    if (is_large(slot) && graph_of(slot).hears(slot.operation.root, config_.self))
        policy_.note_large(slot.heard_count, slot.fragments);
    counters_.policy_changes = policy_.changes();
    if (slot.is_root(config_.self) && is_large(slot)) in_flight_ -= slot.next_multicast - slot.acknowledged;
    complete(slot.id, status);
    slots_.close_finished();
    check_watermark(now_);
    check_leave();
}

void Engine::complete(OperationId operation, int status) {
    ++(status == 0 ? counters_.operations_completed : counters_.operations_failed);
    [[maybe_unused]] const bool queued = notices_.complete(operation, status);
    assert(queued);
}

Nanoseconds Engine::next_deadline() const {
    if (phase_ == Phase::failed || phase_ == Phase::left) return kNever;
    Nanoseconds next = std::min({watch_at_, readiness_.next_deadline(), poll_.next_deadline(),
                                 doubts_.elect_at(), watermark_.next_deadline()});
    next = std::min(next, next_release());
    if (!pushes_.empty()) next = std::min(next, pushes_.front().at);
    for (std::uint64_t id = slots_.first_open(); id < slots_.next(); ++id)
        if (slots_.at(id).state == SlotState::active) next = std::min(next, slots_.at(id).ask_at);
    return next;
}

void Engine::on_timeout(Nanoseconds now) {
    now_ = now;
    if (phase_ == Phase::failed || phase_ == Phase::left) {
        watch_at_ = kNever;
        doubts_.stop();
        return;
    }
    watermark_.on_timeout(now);
    release_holds(now);
    readiness_.on_timeout(now);
    poll_.on_timeout(now);
    follow_poll(now);
    if (doubts_.elect_at() <= now) begin_election(poll_.number() + 1, now);
    for (std::uint64_t id = slots_.first_open(); id < slots_.next(); ++id) {
        Slot& slot = slots_.at(id);
        if (slot.state == SlotState::active && slot.ask_at <= now) on_ask_timer(slot, now);
    }
    while (!pushes_.empty() && pushes_.front().at <= now) {
        Slot& slot = slots_.at(number_of(pushes_.front().operation));
        if (slot.id == pushes_.front().operation) supply_all(slot, true);
        pushes_.pop();
    }
    if (watch_at_ <= now) scan_watches(now);
}

void Engine::check_invariants() const {
    assert(slots_.first_kept() <= slots_.first_open() && slots_.first_open() <= slots_.next() &&
           slots_.next() <= slots_.end());
    assert(watermark_.opened() <= slots_.first_kept());
    std::uint64_t in_flight = 0;
    for (std::uint64_t id = slots_.first_kept(); id < slots_.next(); ++id) {
        const Slot& slot = slots_.at(id);
        if (phase_ == Phase::active) assert(number_of(slot.id) == id && slot.state >= SlotState::active);
        assert(slot.base <= slot.fragments && slot.acknowledged <= slot.fragments);
        for (const Contribution& contribution : slot.contributions)
            assert(contribution.base <= contribution.granted && contribution.granted <= slot.pieces);
        if (slot.state == SlotState::active && is_large(slot) && slot.is_root(config_.self))
            in_flight += slot.next_multicast - slot.acknowledged;
    }
    if (phase_ == Phase::active)
        assert(in_flight == in_flight_ && in_flight <= config_.window + config_.report_step());
}

}  // namespace mcastcoll::engine
