// What goes out, in which order: completions, then multicasts, then messages. Operations take turns.
#include <cassert>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::make_message(Effect& effect, wire::Kind kind, Rank to, OperationId operation,
                          std::uint32_t fragment, std::uint64_t total, Bytes payload) {
    assert(to != config_.self && index_of(to) < config_.members);
    effect = {.kind = Effect::Kind::message, .to = to, .payload = payload};
    const wire::Header header{.kind = kind,
                              .key = config_.key,
                              .epoch = config_.epoch,
                              .sender = config_.self,
                              .operation = operation,
                              .fragment = fragment_of(fragment),
                              .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                              .total = total};
    wire::encode(header, payload, effect.header);
    ++counters_.messages_sent;
}

void Engine::make_packet(Effect& effect, wire::Kind kind, OperationId operation, std::uint32_t fragment,
                         std::uint64_t total, Bytes payload) {
    make_message(effect, kind, rank_of(index_of(config_.self) == 0 ? 1 : 0), operation, fragment, total,
                 payload);
    effect.kind = Effect::Kind::multicast;
    effect.to = kNoRank;
    --counters_.messages_sent;
    ++counters_.datagrams_sent;
}

bool Engine::next_multicast(Effect& effect) {
    if (next_election_multicast(effect)) return true;
    if (phase_ != Phase::active) return false;
    if (const std::uint64_t watermark = watermark_.to_cast(); watermark != 0) {
        make_packet(effect, wire::Kind::watermark_cast, operation_of(watermark), verdicts_.version(), 0, {});
        watermark_.set_cast_due(!take_target(watermark_cast_target_, effect));
        return true;
    }
    return turns_.next([&](std::uint32_t at) {
        return next_fragment(slots_.at(at), effect) ? Turns::Use::sent : Turns::Use::waits;
    });
}

bool Engine::next_slot_message(Slot& slot, Effect& effect) {
    if (slot.state == SlotState::vacant) return false;
    if (next_gather(slot, effect) || next_credit(slot, effect) || next_contribution(slot, effect))
        return true;
    if (slot.report_due) {
        slot.report_due = false;
        ++counters_.reports_sent;
        make_message(effect, wire::Kind::report, slot.report_to, slot.id, slot.reported, slot.bytes, {});
        return true;
    }
    if (slot.done_due) {
        slot.done_due = false;
        make_message(effect, wire::Kind::done, slot.supplier, slot.id, 0, slot.bytes, {});
        return true;
    }
    if (slot.entered_due) {
        slot.entered_due = false;
        ++counters_.entered_sent;
        make_message(effect, wire::Kind::entered, slot.operation.root, slot.id, 0, 0, {});
        return true;
    }
    return next_ask(slot, effect) || next_nack(slot, effect) || next_data(slot, effect);
}

bool Engine::next_message(Effect& effect) {
    if (next_failure_message(effect)) return true;
    if (phase_ == Phase::failed || phase_ == Phase::left) return false;
    if (next_admission_message(effect) || next_election_message(effect) || next_checkpoint_message(effect))
        return true;
    return turns_.next([&](std::uint32_t at) {
        Slot& slot = slots_.at(at);
        if (next_slot_message(slot, effect)) return Turns::Use::sent;
        // A root with fragments left waits for its turn to multicast, all others until marked again.
        const bool multicasts = slot.next_multicast < multicast_limit(slot) || resends(slot);
        return multicasts ? Turns::Use::waits : Turns::Use::idle;
    });
}

bool Engine::poll_effects(Allowed allowed, Effect& effect) {
    if (notices_.next_operation(effect)) return true;
    if (next_notice(effect) || next_watch(effect)) return true;
    if (allowed.multicast && next_multicast(effect)) return true;
    if (allowed.message && next_message(effect)) return true;
    return next_notice(effect);
}

// Counts and drops what is not for this group, or not from one of its members.
bool Engine::accept_header(const wire::Decoded& decoded) {
    if (decoded.refusal != wire::Refusal::none) {
        ++(decoded.refusal == wire::Refusal::checksum ? counters_.bad_checksum : counters_.bad_packet);
        return false;
    }
    const wire::Header& header = decoded.header;
    if (header.key != config_.key) return ++counters_.foreign_group, false;
    if (header.epoch != config_.epoch) return ++counters_.foreign_epoch, false;
    if (index_of(header.sender) >= config_.members) return ++counters_.bad_sender, false;
    if (header.sender == config_.self) return ++counters_.own_copies, false;
    return true;
}

void Engine::on_packet(Bytes datagram, Nanoseconds now) {
    now_ = now;
    const wire::Decoded decoded = wire::decode(datagram);
    if (!accept_header(decoded)) return;
    ++counters_.datagrams_received;
    if (phase_ == Phase::failed || phase_ == Phase::left) return;
    switch (decoded.header.kind) {
        case wire::Kind::probe:
            return on_probe(decoded.header, now);
        case wire::Kind::fragment:
        case wire::Kind::release:
        case wire::Kind::relay:
            return on_fragment(decoded.header, decoded.payload, now);
        case wire::Kind::watermark_cast:
            return on_watermark_cast(decoded.header, now);
        default:
            ++counters_.unexpected_kind;  // messages do not come by multicast
    }
}

void Engine::on_message(Bytes message, Nanoseconds now) {
    now_ = now;
    const wire::Decoded decoded = wire::decode(message);
    if (!accept_header(decoded)) return;
    ++counters_.messages_received;
    if (phase_ == Phase::failed || phase_ == Phase::left) return;
    const wire::Header& header = decoded.header;
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    switch (header.kind) {
        case wire::Kind::data:
            return on_data(header, decoded.payload, now);
        case wire::Kind::ask:
            return on_ask(header, decoded.payload, now);
        case wire::Kind::done:
            return on_done(header);
        case wire::Kind::report:
            return on_report(header, now);
        case wire::Kind::nack:
            return on_nack(header, decoded.payload, now);
        case wire::Kind::entered:
            return on_entered(header, now);
        case wire::Kind::watermark_ask:
            return on_watermark_ask(header);
        case wire::Kind::gather:
            return on_gather(header, decoded.payload, now);
        case wire::Kind::contribution:
            return on_contribution(header, decoded.payload, now);
        case wire::Kind::credit:
            return on_credit(header, now);
        case wire::Kind::watermark_up:
            return on_watermark_up(header, now);
        case wire::Kind::watermark_down:
            return on_watermark_down(header, now);
        case wire::Kind::leave_up:
            return on_leave_up(header);
        case wire::Kind::leave_down:
            return on_leave_down(header, now);
        case wire::Kind::fail:
            return on_fail(header, now);
        case wire::Kind::ready:
            return on_ready(header, now);
        case wire::Kind::go:
            return on_go(header, now);
        case wire::Kind::vote:
            return on_vote(header, decoded.payload, now);
        case wire::Kind::verdict:
            return on_verdict(header, decoded.payload, now);
        case wire::Kind::elect:
            return on_election_request(header, now);
        case wire::Kind::ping:
            pongs_.push(header);
            return;
        case wire::Kind::pong:
            return on_pong(header, now);
        case wire::Kind::fragment:
        case wire::Kind::release:
        case wire::Kind::relay:
        case wire::Kind::probe:
        case wire::Kind::watermark_cast:  // multicasts do not come as messages
        case wire::Kind::piece:
        case wire::Kind::grant:
        case wire::Kind::block:
        case wire::Kind::block_grant:  // and what other levels say to each other does not come here
            ++counters_.unexpected_kind;
            return;
    }
}

}  // namespace mcastcoll::engine
