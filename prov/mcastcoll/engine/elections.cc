// Who hears the multicast and who is heard: the election of the join, and those that follow when somebody
// finds that the last verdict is no longer true.
//
// Rank 0 opens an election (go, down the gather tree); speakers multicast a few probes and everybody notes
// whom it hears; the votes are gathered (vote, up the tree), rank 0 judges, and everybody learns who is deaf
// and who is mute (verdict, down the tree).
//
// In mid-run a member asks for an election, up the tree, when too many operations in a row were silent, or
// when it hears what it should not be able to hear. A root that is mute multicasts a beacon now and then, so
// that there is something to hear. Operations go on meanwhile: who hears nothing is supplied all the same. A
// new verdict is valid from an operation on that nobody can have begun, a window above the last watermark,
// and every later one names the verdict that one must have to act on it. So all members use the same graph
// for an operation, and two graphs at a time are enough.
#include <algorithm>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::on_go(const wire::Header& header, Nanoseconds now) {
    const std::uint64_t number = number_of(header.operation);
    const bool first = number == 0 && phase_ == Phase::forming;
    const bool next = number == poll_.number() + 1 && phase_ == Phase::active && poll_.closed();
    if (header.sender != tree_parent_ || !(first || next)) {
        ++counters_.unexpected_kind;
        return;
    }
    begin_election(number, now);
}

void Engine::begin_election(std::uint64_t number, Nanoseconds now) {
    if (number == 0)
        phase_ = Phase::probing;
    else
        ++counters_.elections;
    readiness_.stop();
    doubts_.on_election(number, now);
    probe_target_ = 0;
    poll_.begin(number, now);
    follow_poll(now);
}

void Engine::follow_poll(Nanoseconds now) {
    if (phase_ == Phase::probing && !poll_.probing()) phase_ = Phase::voting;
    if (poll_.take_result()) decide(poll_.ballots().judge(), now);
}

void Engine::on_probe(const wire::Header& header, Nanoseconds now) {
    ++counters_.probes_received;
    const std::uint64_t number = number_of(header.operation);
    if (phase_ == Phase::active) {
        doubts_.heard(header.sender);
        if (index_of(header.fragment) == 0) {  // a beacon
            if (!graph().can_hear(header.sender, config_.self)) request_election(now);
            return;
        }
    }
    poll_.on_probe(number, header.sender, phase_ == Phase::active);
    follow_poll(now);
}

void Engine::on_vote(const wire::Header& header, Bytes payload, Nanoseconds now) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity || !poll_.on_vote(child, number_of(header.operation), payload, header.total != 0))
        ++counters_.unexpected_kind;
    follow_poll(now);
}

// As rank 0.
void Engine::decide(Verdict verdict, Nanoseconds now) {
    const std::size_t most = (config_.message_bytes - wire::kHeaderBytes) / sizeof(Rank);
    if (verdict.deaf.size() + verdict.mute.size() > most) verdict = {};
    if (phase_ != Phase::active) return take_first_verdict(std::move(verdict), now);
    if (!(verdict == graph().verdict())) return take_verdict(std::move(verdict), slots_.end(), now);
    doubts_.on_same_verdict(now);
}

void Engine::on_verdict(const wire::Header& header, Bytes payload, Nanoseconds now) {
    Verdict verdict{.works = (header.total & 1) != 0, .deaf = {}, .mute = {}};
    const bool first = !verdicts_.known();
    // Rank 0 passes one when everybody has finished what the one before the last was good for.
    if (verdicts_.pending() && slots_.first_open() > verdicts_.first_operation())
        release_below(verdicts_.first_operation() + 1);
    const bool next =
        verdicts_.known() && !verdicts_.pending() && number_of(header.operation) >= slots_.next();
    const std::uint64_t version = first ? 0 : std::uint64_t{verdicts_.version()} + 1;
    if (header.sender != tree_parent_ || header.total >> 1 != version || !(first || next) ||
        !decode(payload, index_of(header.fragment), config_.members, verdict)) {
        ++counters_.unexpected_kind;
        return;
    }
    if (first) return take_first_verdict(std::move(verdict), now);
    take_verdict(std::move(verdict), number_of(header.operation), now);
}

void Engine::take_first_verdict(Verdict verdict, Nanoseconds now) {
    verdicts_.take_first(std::move(verdict));
    phase_ = Phase::active;
    poll_.stop();
    readiness_.stop();
    doubts_.on_verdict();
    notices_.joined();
    ping_due_ = true;  // not before: what the probes keep busy answers late, and teaches long deadlines
    begin_pending(now);
}

void Engine::take_verdict(Verdict verdict, std::uint64_t from, Nanoseconds now) {
    const bool heard = !graph().deaf(config_.self), spoke = graph().multicasts(config_.self);
    verdicts_.take_next(std::move(verdict), from);
    doubts_.on_verdict();
    const bool hears = !graph().deaf(config_.self), speaks = graph().multicasts(config_.self);
    ++counters_.verdicts;
    counters_.lane_demotions += (heard && !hears) || (spoke && !speaks);
    counters_.lane_promotions += (!heard && hears) || (!spoke && speaks);
    if (const std::uint64_t parked = watermark_.take_parked(); parked != 0) raise_watermark(parked, now);
}

// Any fragment tells that the multicast works; one that should not be heard tells that the verdict is too
// bad.
void Engine::note_heard(const wire::Header& header, Nanoseconds now) {
    const std::uint64_t id = number_of(header.operation);
    const bool posted = id >= slots_.first_open() && id < slots_.next();
    doubts_.heard(posted && header.kind == wire::Kind::relay ? slots_.at(id).operation.root : header.sender);
    if (phase_ != Phase::active || !slots_.has(id)) return;
    if (!verdicts_.of(id).can_hear(header.sender, config_.self)) request_election(now);
}

void Engine::note_finished(const Slot& slot, Nanoseconds now) {
    if (slot.heard_ever || !graph_of(slot).hears(slot.operation.root, config_.self)) return;
    if (doubts_.missed(slot.operation.root)) request_election(now);
}

// Called by a root that begins an operation and is not to multicast it.
void Engine::want_beacon(Nanoseconds now) {
    if (config_.multicast && config_.members > 1 && !verdicts_.pending()) doubts_.want_beacon(now);
}

void Engine::request_election(Nanoseconds now) {
    if (!doubts_.requested() && poll_.closed() && !verdicts_.pending()) doubts_.request(now);
}

// One request per election and subtree goes on. Those against a verdict that is about to be replaced are
// dropped: whoever has still reason to will ask again.
void Engine::on_election_request(const wire::Header& header, Nanoseconds now) {
    if (child_index(header.sender) == kMaxArity || phase_ != Phase::active) {
        ++counters_.unexpected_kind;
        return;
    }
    if (number_of(header.operation) != poll_.number() || verdicts_.pending() || doubts_.requested()) return;
    if (poll_.closed())
        doubts_.request(now);
    else
        doubts_.keep_request();
}

bool Engine::next_election_multicast(Effect& effect) {
    if (doubts_.beacon_due()) {
        ++counters_.probes_sent;
        make_packet(effect, wire::Kind::probe, operation_of(poll_.number()), 0, 0, {});
        if (take_target(beacon_target_, effect)) doubts_.beacon_sent();
        return true;
    }
    const std::uint32_t probe = poll_.next_probe();
    if (probe == 0) return false;
    ++counters_.probes_sent;
    make_packet(effect, wire::Kind::probe, operation_of(poll_.number()), probe, 0, {});
    if (!take_target(probe_target_, effect)) return true;
    poll_.probe_sent();
    follow_poll(now_);
    return true;
}

bool Engine::next_election_message(Effect& effect) {
    if (const Rank child = poll_.next_go(); child != kNoRank) {
        make_message(effect, wire::Kind::go, child, operation_of(poll_.number()), 0, 0, {});
        return true;
    }
    if (poll_.take_vote()) {
        make_message(effect, wire::Kind::vote, tree_parent_, operation_of(poll_.number()), 0,
                     poll_.ballots().too_many() ? 1 : 0, poll_.ballots().bytes());
        return true;
    }
    if (const Rank child = verdicts_.next_to_tell(); child != kNoRank) {
        const Verdict& verdict = graph().verdict();
        make_message(effect, wire::Kind::verdict, child,
                     operation_of(verdicts_.pending() ? verdicts_.first_operation() : 0),
                     static_cast<std::uint32_t>(verdict.deaf.size()),
                     std::uint64_t{verdicts_.version()} << 1 | (verdict.works ? 1 : 0), verdicts_.bytes());
        return true;
    }
    if (doubts_.take_request()) {
        ++counters_.appeals_sent;
        make_message(effect, wire::Kind::elect, tree_parent_, operation_of(poll_.number()), 0, 0, {});
        return true;
    }
    return false;
}

}  // namespace mcastcoll::engine
