#include "engine/engine.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace mcastcoll::engine {

void Engine::start(Nanoseconds now) {
    core_.now = now;
    detector_.wake();
    if (core_.config.members == 1) {
        core_.phase = Phase::active;
        core_.notices.joined();
        core_.unsettled = true;
    } else if (admission_.start()) {
        elections_.begin_first();
    }
    settle();
}

Result<OperationId> Engine::submit(const Collective& operation, Nanoseconds now) {
    const GroupConfig& config = core_.config;
    if (core_.phase == Phase::failed) return Error{core_.failure.error(), "the group has failed"};
    if (core_.departure.closing()) return Error{ESHUTDOWN, "the group is closed"};
    if (moves_blocks(operation.kind)) return Error{ENOSYS, "blocks are not the engine's"};
    if (index_of(operation.root) >= config.members)
        return Error{EINVAL, "the root is not a rank of the group"};
    if (operation.bytes / config.fragment_bytes >= UINT32_MAX / 2)
        return Error{EMSGSIZE, "the message is too long"};
    if (operation.kind == CollectiveKind::barrier && operation.bytes > 0)
        return Error{EINVAL, "a barrier has no bytes"};
    if (reduces(operation.kind))
        if (auto fine = check_reduction(config, operation); !fine) return fine.error();
    if (core_.notices.completions() + outstanding() >= 2 * core_.slots.size() + config.pending_operations)
        return Error{EAGAIN, "too many completions have not been taken"};
    const OperationId number = next_operation();
    if (!core_.pending.push(operation)) return Error{EAGAIN, "too many operations are in flight"};
    ++core_.counters.operations_submitted;
    core_.now = now;
    core_.unsettled = true;
    settle();
    return number;
}

void Engine::advance(OperationId operation, std::uint64_t ready, Nanoseconds now) {
    core_.now = now;
    if (core_.over()) return;
    if (const std::uint64_t number = number_of(operation); number >= core_.slots.next()) {
        const std::uint64_t behind = number - core_.slots.next();
        if (behind >= core_.pending.size()) return;
        std::uint64_t& before = core_.pending.at(behind).ready;
        before = std::max(before, ready);
        return;
    }
    Slot* slot = core_.slots.find_active(operation);
    if (slot == nullptr || slot->operation.ready >= ready) return;
    slot->operation.ready = ready;
    slot->progress_at = now;
    if (reduces(slot->operation.kind))
        gatherer_.advance(*slot);
    else if (slot->operation.kind == CollectiveKind::broadcast && slot->is_root(core_.config.self))
        sender_.advance(*slot);
    settle();
}

std::uint64_t Engine::arrived(OperationId operation) const {
    if (!core_.slots.posted(operation)) return 0;
    const Slot& slot = core_.slots.at(number_of(operation));
    if (reduces(slot.operation.kind) && slot.is_root(core_.config.self))
        return gatherer_.combined_bytes(slot);
    if (slot.complete_here()) return slot.bytes;
    return core_.large(slot) ? std::uint64_t{slot.base} * core_.config.fragment_bytes : 0;
}

bool Engine::release(OperationId operation, Nanoseconds now) {
    core_.now = now;
    if (core_.phase != Phase::active) return false;
    Slot* slot = core_.slots.find_active(operation);
    if (slot == nullptr || !gatherer_.release(*slot)) return false;
    settle();
    return true;
}

void Engine::close(Nanoseconds now) {
    core_.now = now;
    if (core_.departure.closing()) return;
    core_.departure.close();
    detector_.wake();
    if (core_.phase != Phase::active && core_.phase != Phase::failed)
        return core_.fail(core_.config.self, kClosedEarly);
    core_.unsettled = true;
    settle();
}

void Engine::on_peer_lost(Rank rank, int error, Nanoseconds now) {
    if (index_of(rank) < core_.config.members) lose(rank, error, now);
}

void Engine::begin_pending() {
    detector_.wake();
    while (core_.phase == Phase::active && !core_.pending.empty() &&
           core_.slots.next() < checkpoint_.opened() + core_.config.most_ahead()) {
        const Collective operation = core_.pending.front();
        core_.pending.pop();
        begin(operation);
    }
    if (core_.phase == Phase::active && !core_.pending.empty()) checkpoint_.await();
}

void Engine::begin(const Collective& operation) {
    Slot& slot = *core_.claim(operation_of(core_.slots.post()));
    assert(slot.state == SlotState::vacant || slot.state == SlotState::early);
    const bool root = operation.root == core_.config.self;
    const bool misled = (slot.length_known && (root || slot.bytes != operation.bytes ||
                                               operation.kind == CollectiveKind::reduce)) ||
                        (slot.hearing.early_root != kNoRank && slot.hearing.early_root != operation.root);
    // What came before the post was for something else: it is taken again from the supplier, who will object.
    if (misled) {
        ++core_.counters.bad_fragment;
        slot.base = slot.hearing.revealed = 0;
        slot.have.clear_all();
    }
    if (core_.config.members > 1 && core_.round_trip.wants_ping()) core_.round_trip.request_ping();
    slot.operation = operation;
    if (operation.input == nullptr) slot.operation.input = operation.buffer;
    receiver_.adopt_early(slot, !misled);
    slot.state = SlotState::active;
    slot.posted_at = slot.progress_at = core_.moved_at = core_.now;
    slot.length_known = true;
    slot.bytes = operation.kind == CollectiveKind::reduce ? 0 : operation.bytes;
    slot.fragments = core_.config.fragments(slot.bytes);
    core_.mark(slot);
    if (operation.kind == CollectiveKind::broadcast && slot.gathering.told != kNothingTold)
        return core_.fail(kNoRank, EMSGSIZE);        // others gather
    if (operation.kind == CollectiveKind::reduce) {  // nothing comes down
        slot.base = slot.fragments;
        return gatherer_.begin(slot);
    }

    slot.plan = core_.policy.plan(core_.large(slot), number_of(slot.id));
    const SupplyGraph& graph = core_.graph_of(slot);
    const GroupConfig& config = core_.config;
    const std::uint32_t arity = core_.large(slot) ? config.large_tree_arity : config.tree_arity;
    slot.supplier = graph.supplier(operation.root, core_.config.self, arity);
    slot.expect_clients(graph.clients(operation.root, core_.config.self, arity));
    slot.reporting.parent = graph.report_parent(operation.root, core_.config.self, core_.config.tree_arity);
    slot.reporting.children =
        graph.report_children(operation.root, core_.config.self, core_.config.tree_arity);

    if (root && !graph.audible(core_.config.self)) elections_.want_beacon();
    if (gathers(operation.kind)) {
        gatherer_.begin(slot);
    } else if (root) {
        holds_.begin(slot);
        sender_.advance(slot);
    }
    if (root || slot.state != SlotState::active) return;
    if (operation.kind == CollectiveKind::broadcast) holds_.tell_entered(slot);
    receiver_.begin(slot);
    // What a supplier sent unasked was thrown away with the rest: only asking brings it, or its objection,
    // again.
    if (misled && slot.state == SlotState::active) repairer_.request(slot, slot.fragments);
}

Nanoseconds Engine::next_deadline() const {
    if (core_.over()) return kNever;
    return std::min({detector_.next_deadline(), repairer_.next_deadline(), admission_.next_deadline(),
                     elections_.next_deadline(), checkpoint_.next_deadline(), holds_.next_deadline(),
                     supplier_.next_deadline()});
}

void Engine::on_timeout(Nanoseconds now) {
    core_.now = now;
    if (core_.over()) return;
    checkpoint_.on_timeout();
    holds_.release();
    admission_.on_timeout();
    elections_.on_timeout();
    repairer_.on_timeout();
    supplier_.on_timeout();
    settle();
    detector_.on_timeout();
}

void Engine::check_invariants() const {
    assert(core_.slots.first_kept() <= core_.slots.first_open() &&
           core_.slots.first_open() <= core_.slots.next() && core_.slots.next() <= core_.slots.end());
    assert(checkpoint_.opened() <= core_.slots.first_kept());
    std::uint64_t in_flight = 0;
    for (std::uint64_t id = core_.slots.first_kept(); id < core_.slots.next(); ++id) {
        const Slot& slot = core_.slots.at(id);
        if (core_.phase == Phase::active) assert(number_of(slot.id) == id && slot.state >= SlotState::active);
        assert(slot.base <= slot.fragments && slot.multicasting.acknowledged <= slot.fragments);
        for (const Contribution& contribution : slot.gathering.contributions)
            assert(contribution.base <= contribution.granted &&
                   contribution.granted <= slot.gathering.pieces);
        if (slot.state == SlotState::active && core_.large(slot) && slot.is_root(core_.config.self))
            in_flight += slot.multicasting.next - slot.multicasting.acknowledged;
    }
    if (core_.phase == Phase::active)
        assert(in_flight == flow_.in_flight() &&
               in_flight <= core_.config.window + core_.config.report_step());
}

}  // namespace mcastcoll::engine
