#include "engine/engine.h"

#include <cerrno>

namespace mcastcoll::engine {

void Engine::start(Nanoseconds now) {
    core_.now = now;
    detector_.wake();
    if (core_.config.members == 1) {
        core_.phase = Phase::active;
        core_.notices.joined = true;
        core_.unsettled = true;
    } else if (admission_.start()) {
        elections_.begin_first();
    }
    settle();
}

Result<OperationId> Engine::submit(const Collective& operation, Nanoseconds now) {
    const GroupConfig& config = core_.config;
    if (core_.phase == Phase::failed) return Error{core_.failure.error, "the group has failed"};
    if (core_.departure.closing()) return Error{ESHUTDOWN, "the group is closed"};
    if (moves_blocks(operation.kind)) return Error{ENOSYS, "the engine has no collectives of blocks"};
    if (index_of(operation.root) >= config.members)
        return Error{EINVAL, "the root is not a rank of the group"};
    if (operation.bytes / config.fragment_bytes >= UINT32_MAX / 2)
        return Error{EMSGSIZE, "the message is too long"};
    if (operation.kind == CollectiveKind::barrier && operation.bytes > 0)
        return Error{EINVAL, "a barrier must not have data"};
    if (reduces(operation.kind))
        if (auto fine = check_reduction(config, operation); !fine) return fine.error();
    // Operations posted and not completed.
    const std::uint64_t outstanding = core_.counters.operations_submitted -
                                      core_.counters.operations_completed - core_.counters.operations_failed;
    if (core_.notices.completions.size() + outstanding >= 2 * core_.slots.size() + config.pending_operations)
        return Error{EAGAIN, "too many completions have not been read"};
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
    else if (slot->operation.kind == CollectiveKind::broadcast && core_.is_root(*slot))
        sender_.advance(*slot);
    settle();
}

std::uint64_t Engine::arrived(OperationId operation) const {
    if (!core_.slots.posted(operation)) return 0;
    const Slot& slot = core_.slots.at(number_of(operation));
    if (reduces(slot.operation.kind) && core_.is_root(slot)) return gatherer_.combined_bytes(slot);
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
        return core_.fail(core_.self(), kClosedEarly);
    core_.unsettled = true;
    settle();
}

void Engine::on_peer_lost(Rank rank, int error, Nanoseconds now) {
    core_.now = now;
    if (index_of(rank) < core_.config.members) core_.fail(rank, error);
}

void Engine::begin_pending() {
    detector_.wake();
    while (core_.phase == Phase::active && !core_.pending.empty() &&
           core_.slots.next() < checkpoint_.opened() + core_.config.max_ahead()) {
        const Collective operation = core_.pending.front();
        core_.pending.pop();
        begin(operation);
    }
    if (core_.phase == Phase::active && !core_.pending.empty()) checkpoint_.await();
}

void Engine::begin(const Collective& operation) {
    Slot& slot = *core_.claim(operation_of(core_.slots.post()));
    assert(slot.state == SlotState::vacant || slot.state == SlotState::early);
    const bool root = operation.root == core_.self();
    const bool wrong_early_data =
        (slot.length_known &&
         (root || slot.bytes != operation.bytes || operation.kind == CollectiveKind::reduce)) ||
        (slot.reception.early_root != kNoRank && slot.reception.early_root != operation.root);
    // Early data belonged to another operation: discard the data and request everything from the supplier,
    // which reports a mismatch.
    if (wrong_early_data) {
        ++core_.counters.bad_fragment;
        slot.base = slot.reception.revealed = slot.reception.stored = 0;
        slot.have.clear_all();
    }
    if (core_.config.members > 1) core_.round_trip.want_shorter();
    slot.operation = operation;
    if (operation.input == nullptr) slot.operation.input = operation.buffer;
    receiver_.adopt_early(slot, !wrong_early_data);
    slot.state = SlotState::active;
    slot.posted_at = slot.progress_at = core_.moved_at = core_.now;
    slot.length_known = true;
    slot.bytes = operation.kind == CollectiveKind::reduce ? 0 : operation.bytes;
    slot.fragments = core_.config.fragments(slot.bytes);
    core_.mark(slot);
    if (operation.kind == CollectiveKind::broadcast && slot.gathering.announced_total != kNothingAnnounced)
        return core_.fail(kNoRank, EMSGSIZE);        // other members gather under this number
    if (operation.kind == CollectiveKind::reduce) {  // no result comes down
        slot.base = slot.fragments;
        return gatherer_.begin(slot);
    }

    slot.repair_mode = core_.policy.mode(core_.large(slot), number_of(slot.id));
    const SupplyGraph& graph = core_.graph_of(slot);
    const GroupConfig& config = core_.config;
    const std::uint32_t arity = core_.large(slot) ? config.large_tree_arity : config.tree_arity;
    slot.supplier = graph.supplier(operation.root, core_.self(), arity);
    slot.expect_clients(graph.clients(operation.root, core_.self(), arity));
    slot.reporting.parent = graph.report_parent(operation.root, core_.self(), core_.config.tree_arity);
    slot.reporting.children = graph.report_children(operation.root, core_.self(), core_.config.tree_arity);

    if (root && !graph.audible(core_.self())) elections_.want_beacon();
    if (gathers(operation.kind)) {
        gatherer_.begin(slot);
    } else if (root) {
        holds_.begin(slot);
        sender_.advance(slot);
    }
    if (root || slot.state != SlotState::active) return;
    if (operation.kind == CollectiveKind::broadcast) holds_.send_entered(slot);
    receiver_.begin(slot);
    // Data that a supplier sent unsolicited was discarded as well. Only a NAK brings that data, or the
    // supplier's error, again.
    if (wrong_early_data && slot.state == SlotState::active) repairer_.request(slot, slot.fragments);
}

Nanoseconds Engine::next_deadline() const {
    if (core_.over()) return kNever;
    return std::min({detector_.next_deadline(), repairer_.next_deadline(), admission_.next_deadline(),
                     elections_.next_deadline(), checkpoint_.next_deadline(), holds_.next_deadline(),
                     supplier_.next_deadline(), sender_.next_deadline(), flow_.next_deadline()});
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
    sender_.on_timeout();
    flow_.on_timeout();
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
        assert(core_.phase != Phase::active || !repairer_.is_stuck(slot));
        for (const Slot::Contribution& contribution : slot.gathering.contributions)
            assert(contribution.base <= contribution.granted &&
                   contribution.granted <= slot.gathering.pieces);
        if (slot.state == SlotState::active && core_.large(slot) && core_.is_root(slot))
            in_flight += slot.multicasting.next - slot.multicasting.acknowledged;
    }
    if (core_.phase == Phase::active)
        assert(in_flight == flow_.in_flight() &&
               in_flight <= core_.config.window + core_.config.report_step(core_.config.window));
}

// Operations with something to multicast take turns.
bool Engine::next_multicast(Effect& effect) {
    if (core_.over()) return false;
    if (elections_.next_multicast(effect)) return true;
    if (core_.phase != Phase::active) return false;
    if (checkpoint_.next_multicast(effect)) return true;
    return core_.turns.next([&](std::uint32_t at) {
        return sender_.next_multicast(core_.slots.at(at), effect) ? Turns::Use::sent : Turns::Use::waits;
    });
}

bool Engine::next_slot_message(Slot& slot, Effect& effect) {
    return slot.state != SlotState::vacant &&
           (gatherer_.next_message(slot, effect) || flow_.next_message(slot, effect) ||
            holds_.next_message(slot, effect) || repairer_.next_message(slot, effect) ||
            root_repairer_.next_message(slot, effect) || supplier_.next_message(slot, effect));
}

bool Engine::next_message(Effect& effect) {
    if (detector_.next_message(effect)) return true;
    if (core_.over()) return false;
    if (admission_.next_message(effect) || elections_.next_message(effect) ||
        checkpoint_.next_message(effect))
        return true;
    return core_.turns.next([&](std::uint32_t at) {
        Slot& slot = core_.slots.at(at);
        if (next_slot_message(slot, effect)) return Turns::Use::sent;
        // A root with fragments left keeps its turn to multicast; other operations have none until they are
        // marked again.
        return sender_.waits(slot) ? Turns::Use::waits : Turns::Use::idle;
    });
}

// Returns notices first, then ranks to watch, multicasts and messages. The last message of a group can cause
// a notice.
bool Engine::poll_effects(Allowed allowed, Effect& effect) {
    const auto next_notice = [&] { return core_.notices.next_of_group(effect, core_.failure); };
    const bool found = core_.notices.next_operation(effect) || next_notice() ||
                       detector_.next_watch(effect) || (allowed.multicast && next_multicast(effect)) ||
                       (allowed.message && next_message(effect)) || next_notice();
    settle();
    return found;
}

// Counts the packet, and drops packets of other groups, packets from outside the group, and packets after the
// end of the group.
bool Engine::accept(const wire::Decoded& decoded, std::uint64_t& received, Nanoseconds now) {
    core_.now = now;
    if (decoded.refusal != wire::Refusal::none) {
        const bool checksum = decoded.refusal == wire::Refusal::checksum;
        return ++(checksum ? core_.counters.bad_checksum : core_.counters.bad_packet), false;
    }
    const wire::Header& header = decoded.header;
    if (header.key != core_.config.key) return ++core_.counters.foreign_group, false;
    if (header.epoch != core_.config.epoch) return ++core_.counters.foreign_epoch, false;
    if (index_of(header.sender) >= core_.config.members) return ++core_.counters.bad_sender, false;
    if (header.sender == core_.self()) return ++core_.counters.own_copies, false;
    ++received;
    return !core_.over();
}

void Engine::on_packet(Bytes datagram, Nanoseconds now) {
    if (core_.now == now && receiver_.take_predicted(datagram)) {
        ++core_.counters.datagrams_received;
        return;
    }
    const wire::Decoded decoded = wire::decode(datagram, core_.config.checksum);
    if (!accept(decoded, core_.counters.datagrams_received, now)) return;
    dispatch_packet(decoded.header, decoded.payload);
    receiver_.predict_after(decoded.header, datagram);
    settle();
}

void Engine::on_message(Bytes message, Nanoseconds now) {
    const wire::Decoded decoded = wire::decode(message, core_.config.checksum);
    if (!accept(decoded, core_.counters.messages_received, now)) return;
    detector_.wake();
    dispatch_message(decoded.header, decoded.payload);
    settle();
}

void Engine::dispatch_packet(const wire::Header& header, Bytes payload) {
    switch (header.kind) {
        case wire::Kind::probe:
            return elections_.on_probe(header);
        case wire::Kind::fragment:
        case wire::Kind::release:
        case wire::Kind::relay:
            detector_.wake();
            elections_.on_fragment(header);
            return receiver_.on_fragment(header, payload);
        case wire::Kind::parity:
            detector_.wake();
            elections_.on_fragment(header);
            return receiver_.on_parity(header, payload);
        case wire::Kind::watermark_cast:
            return checkpoint_.on_watermark(header, rank_of(0));
        default:
            ++core_.counters.unexpected_kind;  // kinds that only travel as messages
    }
}

void Engine::dispatch_message(const wire::Header& header, Bytes payload) {
    switch (header.kind) {
        case wire::Kind::data:
            return receiver_.on_data(header, payload);
        case wire::Kind::nak:
            return supplier_.on_nak(header, payload);
        case wire::Kind::done:
            return flow_.on_done(header);
        case wire::Kind::report:
            return flow_.on_report(header);
        case wire::Kind::root_nak:
            return root_repairer_.on_root_nak(header, payload);
        case wire::Kind::entered:
            return holds_.on_entered(header);
        case wire::Kind::watermark_request:
            return checkpoint_.on_request(header);
        case wire::Kind::gather:
            return gatherer_.on_gather(header, payload);
        case wire::Kind::contribution:
            return gatherer_.on_contribution(header, payload);
        case wire::Kind::credit:
            return gatherer_.on_credit(header);
        case wire::Kind::watermark_up:
            return checkpoint_.on_up(header);
        case wire::Kind::watermark_down:
            return checkpoint_.on_watermark(header, core_.parent);
        case wire::Kind::leave_up:
            return checkpoint_.on_leave_up(header);
        case wire::Kind::leave_down:
            return checkpoint_.on_leave_down(header);
        case wire::Kind::fail:
            return detector_.on_fail(header);
        case wire::Kind::ready:
            if (admission_.on_ready(header)) elections_.begin_first();
            return;
        case wire::Kind::go:
            return elections_.on_go(header);
        case wire::Kind::vote:
            return elections_.on_vote(header, payload);
        case wire::Kind::reachability_map:
            return elections_.on_map(header, payload);
        case wire::Kind::election_request:
            return elections_.on_request(header);
        case wire::Kind::ping:
            return admission_.on_ping(header);
        case wire::Kind::pong:
            return admission_.on_pong(header);
        default:
            ++core_.counters.unexpected_kind;  // multicast kinds, and messages of other levels
    }
}

}  // namespace mcastcoll::engine
