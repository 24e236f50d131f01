// What comes in, and what goes out, in which order: completions, then multicasts, then messages. Operations
// take turns.
#include "engine/engine.h"

namespace mcastcoll::engine {

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
            nacker_.next_message(slot, effect) || supplier_.next_message(slot, effect));
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
        // A root with fragments left waits for its turn to multicast, all others until marked again.
        return sender_.waits(slot) ? Turns::Use::waits : Turns::Use::idle;
    });
}

bool Engine::poll_effects(Allowed allowed, Effect& effect) {
    const auto next_notice = [&] {
        return core_.notices.next_of_group(effect, core_.failure.lost(), core_.failure.error());
    };
    const bool found = core_.notices.next_operation(effect) || next_notice() ||
                       detector_.next_watch(effect) || (allowed.multicast && next_multicast(effect)) ||
                       (allowed.message && next_message(effect)) || next_notice();
    settle();
    return found;
}

// Counts and drops what is not for this group, or not from one of its members.
bool Engine::accept(const wire::Decoded& decoded) {
    if (decoded.refusal != wire::Refusal::none) {
        ++(decoded.refusal == wire::Refusal::checksum ? core_.counters.bad_checksum
                                                      : core_.counters.bad_packet);
        return false;
    }
    const wire::Header& header = decoded.header;
    if (header.key != core_.config.key) return ++core_.counters.foreign_group, false;
    if (header.epoch != core_.config.epoch) return ++core_.counters.foreign_epoch, false;
    if (index_of(header.sender) >= core_.config.members) return ++core_.counters.bad_sender, false;
    if (header.sender == core_.config.self) return ++core_.counters.own_copies, false;
    return true;
}

void Engine::on_packet(Bytes datagram, Nanoseconds now) {
    core_.now = now;
    const wire::Decoded decoded = wire::decode(datagram);
    if (!accept(decoded)) return;
    ++core_.counters.datagrams_received;
    if (core_.over()) return;
    dispatch_packet(decoded.header, decoded.payload);
    settle();
}

void Engine::on_message(Bytes message, Nanoseconds now) {
    core_.now = now;
    const wire::Decoded decoded = wire::decode(message);
    if (!accept(decoded)) return;
    ++core_.counters.messages_received;
    if (core_.over()) return;
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
        case wire::Kind::watermark_cast:
            return checkpoint_.on_cast(header);
        default:
            ++core_.counters.unexpected_kind;  // messages do not come by multicast
    }
}

void Engine::dispatch_message(const wire::Header& header, Bytes payload) {
    switch (header.kind) {
        case wire::Kind::data:
            return receiver_.on_data(header, payload);
        case wire::Kind::ask:
            return supplier_.on_ask(header, payload);
        case wire::Kind::done:
            return flow_.on_done(header);
        case wire::Kind::report:
            return flow_.on_report(header);
        case wire::Kind::nack:
            return nacker_.on_nack(header, payload);
        case wire::Kind::entered:
            return holds_.on_entered(header);
        case wire::Kind::watermark_ask:
            return checkpoint_.on_ask(header);
        case wire::Kind::gather:
            return gatherer_.on_gather(header, payload);
        case wire::Kind::contribution:
            return gatherer_.on_contribution(header, payload);
        case wire::Kind::credit:
            return gatherer_.on_credit(header);
        case wire::Kind::watermark_up:
            return checkpoint_.on_up(header);
        case wire::Kind::watermark_down:
            return checkpoint_.on_down(header);
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
        case wire::Kind::verdict:
            return elections_.on_verdict(header, payload);
        case wire::Kind::elect:
            return elections_.on_request(header);
        case wire::Kind::ping:
            return admission_.on_ping(header);
        case wire::Kind::pong:
            return admission_.on_pong(header);
        case wire::Kind::fragment:
        case wire::Kind::release:
        case wire::Kind::relay:
        case wire::Kind::probe:
        case wire::Kind::watermark_cast:  // multicasts do not come as messages
        case wire::Kind::piece:
        case wire::Kind::grant:
        case wire::Kind::block:
        case wire::Kind::block_grant:  // and what other levels say to each other does not come here
            ++core_.counters.unexpected_kind;
            return;
    }
}

}  // namespace mcastcoll::engine
