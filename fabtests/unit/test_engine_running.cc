// Small components of the engine that work after the join: reachability maps, suspicions and elections,
// deadlines, memory, slots, turns, notices.
#include <criterion/criterion.h>

#include <set>
#include <vector>

#include "engine/ballots.h"
#include "engine/deadlines.h"
#include "engine/elections.h"
#include "engine/notices.h"
#include "engine/pool.h"
#include "engine/reachability_maps.h"
#include "engine/round_trip.h"
#include "engine/slot.h"
#include "engine/slots.h"
#include "engine/speakers.h"
#include "engine/turns.h"

using namespace mcastcoll;
using namespace mcastcoll::engine;

namespace {

constexpr Nanoseconds kBegin = Nanoseconds::from_ms(1);

GroupConfig running_config(std::uint32_t members) {
    GroupConfig config;
    config.self = rank_of(1);
    config.members = members;
    return config;
}

RankList two_children() {
    RankList children;
    children.add(rank_of(5));
    children.add(rank_of(6));
    return children;
}

}  // namespace

Test(maps, a_later_one_holds_from_an_operation_on) {
    ReachabilityMaps maps(running_config(8), two_children());
    cr_assert_not(maps.of(0).audible(rank_of(0)), "all is point-to-point");
    cr_assert_eq(maps.next_to_inform(), kNoRank);
    maps.take_first({.works = true, .deaf = {}, .mute = {}});
    cr_assert(maps.of(0).can_receive(rank_of(0), rank_of(3)));
    cr_assert(maps.next_to_inform() == rank_of(5) && maps.next_to_inform() == rank_of(6));
    cr_assert_eq(maps.next_to_inform(), kNoRank, "once");

    maps.take_next({.works = true, .deaf = {rank_of(3)}, .mute = {}}, 200);
    cr_assert(maps.pending() && maps.version() == 1 && maps.first_operation() == 200);
    cr_assert(maps.of(199).can_receive(rank_of(0), rank_of(3)));
    cr_assert_not(maps.of(200).can_receive(rank_of(0), rank_of(3)));
    cr_assert_eq(&maps.latest(), &maps.of(200));
    cr_assert_eq(maps.next_to_inform(), rank_of(5), "this one, too");
    maps.release_below(200);
    cr_assert(maps.pending(), "operation 199 is over, but 200 may not have begun anywhere");
    maps.release_below(201);
    cr_assert_not(maps.pending());
    cr_assert_not(maps.latest().can_receive(rank_of(0), rank_of(3)));
    cr_assert_eq(maps.version(), 1U);
}

Test(suspicion, a_run_of_silence_is_a_reason) {
    Suspicion suspicion;
    const Rank root = rank_of(2);
    const auto miss = [&] {
        suspicion.missed(root);
        return suspicion.take_wanted() == root;
    };
    for (std::uint32_t i = 1; i < kSilentEnough; ++i) cr_assert_not(miss());
    cr_assert(miss() && suspicion.silent(root));
    suspicion.received(root);
    cr_assert_not(suspicion.silent(root) || miss(), "the run begins anew");
    suspicion.rest(kSilentEnough);
    for (std::uint32_t i = 0; i < kSilentEnough; ++i) cr_assert_not(miss());
    cr_assert(miss());
}

namespace {

// A member of a group; an active one has the reachability map of the join.
struct Electing {
    Electing(std::uint32_t self, std::uint32_t members, bool multicast = true, std::uint32_t probes = 1,
             bool active = true)
        : core([&] {
              GroupConfig config = running_config(members);
              config.self = rank_of(self);
              config.multicast = multicast;
              config.probes = probes;
              return config;
          }()) {
        core.now = kBegin;
        if (!active) return;
        core.reachability.take_first({.works = true, .deaf = {}, .mute = {}});
        core.phase = Phase::active;
        messages();
    }
    static wire::Header header(wire::Kind kind, std::uint32_t from, std::uint64_t number,
                               std::uint32_t fragment = 0, std::uint64_t total = 0) {
        wire::Header header;
        header.kind = kind;
        header.sender = rank_of(from);
        header.operation = operation_of(number);
        header.fragment = fragment_of(fragment);
        header.total = total;
        return header;
    }
    void request(std::uint32_t from, std::uint64_t number, Rank suspected = kNoRank) {
        elections.on_request(header(wire::Kind::election_request, from, number, index_of(suspected)));
    }
    void go(std::uint64_t number, Rank suspected = kNoRank) {
        elections.on_go(header(wire::Kind::go, index_of(core.parent), number, index_of(suspected)));
    }
    void probe(std::uint32_t from, std::uint64_t number) {
        elections.on_probe(header(wire::Kind::probe, from, number, 1));
    }
    void vote(std::uint32_t from, std::uint64_t number, Bytes ballots = {}) {
        elections.on_vote(header(wire::Kind::vote, from, number), ballots);
    }
    // Takes all messages to be sent, and returns how many are of this kind.
    std::size_t messages(wire::Kind kind = wire::Kind::election_request) {
        std::size_t found = 0;
        for (Effect effect; elections.next_message(effect);) found += wire::peek_kind(effect.header) == kind;
        return found;
    }
    // Returns the member that the next message of a kind suspects.
    Rank named_suspect(wire::Kind kind) {
        for (Effect effect; elections.next_message(effect);)
            if (wire::peek_kind(effect.header) == kind)
                return rank_of(wire::get<std::uint32_t>(effect.header.data() + 32));
        return rank_of(UINT32_MAX - 1);
    }
    std::size_t multicasts() {
        std::size_t found = 0;
        for (Effect effect; elections.next_multicast(effect);) ++found;
        return found;
    }

    Core core;
    Elections elections{core};
};

}  // namespace

Test(elections, rank_0_judges_when_all_are_received_and_have_voted) {
    Electing leader(0, 3);
    leader.request(1, 0);
    leader.elections.on_timeout();
    cr_assert_eq(leader.messages(wire::Kind::go), 2U);
    for (const std::uint32_t other : {1U, 2U}) leader.probe(other, 1);
    cr_assert_neq(leader.elections.next_deadline(), kNever, "its own probe has not gone out");
    cr_assert_eq(leader.multicasts(), 1U);
    cr_assert_eq(leader.elections.next_deadline(), kNever);
    Ballots ballots(3, 1, 1024);
    ballots.cast(rank_of(1), {false, true, false}, true);  // receives from none but itself
    leader.vote(1, 2, ballots.bytes());
    cr_assert_eq(leader.core.counters.unexpected_kind, 1U, "another poll");
    for (int i = 0; i < 2; ++i) leader.vote(1, 1, ballots.bytes());
    cr_assert_eq(leader.core.counters.unexpected_kind, 2U, "twice");
    cr_assert_eq(leader.core.reachability.version(), 0U);
    leader.vote(2, 1);
    cr_assert_eq(leader.core.reachability.version(), 1U);
    cr_assert(leader.core.graph().map().deaf == (std::vector<Rank>{rank_of(1)}));
}

Test(elections, probes_of_the_next_may_come_before_its_go) {
    Electing leaf(1, 2);
    leaf.probe(0, 2);  // of a later election than the next
    leaf.probe(0, 1);
    leaf.go(1);
    cr_assert(leaf.multicasts() == 1 && leaf.messages(wire::Kind::vote) == 1,
              "the only other one was received");
    cr_assert_eq(leaf.messages(wire::Kind::vote), 0U, "once");
    leaf.go(2);
    cr_assert(leaf.multicasts() == 1 && leaf.messages(wire::Kind::vote) == 0,
              "no member was received in this one");
    leaf.core.now = leaf.elections.next_deadline();
    leaf.elections.on_timeout();
    cr_assert_eq(leaf.messages(wire::Kind::vote), 1U, "time is up");
}

Test(elections, requests_and_go_name_the_suspected_member) {
    const Rank silent = rank_of(8), other = rank_of(9);
    Electing member(1, 257);
    member.request(5, 0, silent);
    cr_assert_eq(member.named_suspect(wire::Kind::election_request), silent);
    member.go(1, other);
    cr_assert_eq(member.named_suspect(wire::Kind::go), other);

    Electing leader(0, 257);
    leader.request(1, 0);
    leader.request(2, 0, silent);
    leader.request(3, 0, other);
    leader.elections.on_timeout();
    cr_assert_eq(leader.named_suspect(wire::Kind::go), silent, "the first of them");
    leader.multicasts();
    const Speakers speakers(257, 1, silent);
    for (std::uint32_t i = 0; i < speakers.count(); ++i) leader.probe(index_of(speakers.rank(i)), 1);
    leader.request(1, 1, silent);
    leader.request(2, 1, other);
    for (std::uint32_t child = 1; child <= leader.core.children.count; ++child) leader.vote(child, 1);
    leader.core.now = leader.elections.next_deadline();
    cr_assert_neq(leader.core.now, kNever, "requests during the election are not lost");
    leader.elections.on_timeout();
    cr_assert_eq(leader.named_suspect(wire::Kind::go), other, "it had no turn yet");
}

Test(elections, a_suspected_member_probes_and_may_be_received_before_the_go) {
    const Rank silent = rank_of(8);
    const auto all_regular_speak = [](Electing& member) {
        const Speakers speakers(257, 1);
        for (std::uint32_t i = 0; i < speakers.count(); ++i) member.probe(index_of(speakers.rank(i)), 1);
    };
    Electing speaker(250, 257);
    all_regular_speak(speaker);
    speaker.go(1, rank_of(250));
    cr_assert(speaker.multicasts() == 1 && speaker.messages(wire::Kind::vote) == 1);

    for (const bool early : {true, false}) {
        Electing leaf(250, 257);
        all_regular_speak(leaf);
        if (early) leaf.probe(index_of(silent), 1);
        leaf.go(1, silent);
        cr_assert_eq(leaf.messages(wire::Kind::vote), early);
        if (early) continue;
        leaf.probe(9, 1);  // this rank does not speak
        cr_assert_eq(leaf.messages(wire::Kind::vote), 0U);
        leaf.probe(index_of(silent), 1);
        cr_assert_eq(leaf.messages(wire::Kind::vote), 1U);
    }
}

Test(elections, several_probes_go_out_one_by_one_and_one_after_the_map) {
    Electing leaf(1, 2, true, 3, false);
    leaf.go(0);
    for (int probe = 1; probe <= 2; ++probe) {
        cr_assert_eq(leaf.multicasts(), 1U);
        leaf.core.now = leaf.elections.next_deadline();
        leaf.elections.on_timeout();
    }
    leaf.elections.on_map(Electing::header(wire::Kind::reachability_map, 0, 0, 0, 1), {});
    cr_assert(leaf.core.phase == Phase::active && leaf.elections.next_deadline() == kNever);
    cr_assert_eq(leaf.multicasts(), 1U, "others still listen");
    cr_assert_eq(leaf.messages(wire::Kind::vote), 0U);
}

Test(elections, one_request_goes_on) {
    Electing member(1, 8);  // parent 0, children 5 to 7
    member.request(5, 0);
    cr_assert_eq(member.messages(), 1U);
    member.request(6, 0);
    cr_assert_eq(member.messages(), 0U, "once");
    cr_assert_eq(member.elections.next_deadline(), kNever, "to hold one is rank 0's");
    member.go(1);
    member.request(5, 0);
    cr_assert_eq(member.messages(), 0U, "that was before this one");
    member.request(5, 1);
    cr_assert_eq(member.messages(), 1U, "anew");
    member.request(5, 1);
    member.core.reachability.take_next({.works = false, .deaf = {}, .mute = {}}, 300);
    member.request(6, 1);
    cr_assert_eq(member.messages(), 0U, "against the map before");
}

Test(elections, rank_0_holds_them_ever_less_often) {
    Electing leader(0, 2);
    leader.request(1, 0);
    cr_assert_eq(leader.messages(), 0U, "there is no member to inform");
    Nanoseconds min{};
    for (std::uint64_t number = 1; number <= 3; ++number) {
        const Nanoseconds begin = leader.elections.next_deadline();
        cr_assert_geq(begin - leader.core.now, min);
        leader.core.now = begin;
        leader.elections.on_timeout();
        cr_assert_eq(leader.core.counters.elections, number);
        cr_assert_eq(leader.multicasts(), 1U);
        leader.probe(1, number);
        leader.request(1, number);  // the request waits for the end of the election
        leader.vote(1, number);
        cr_assert_eq(leader.core.reachability.version(), 0U, "it ends in the same map");
        min = Nanoseconds{min == Nanoseconds{} ? leader.core.config.min_election_interval.value
                                               : 2 * min.value};
    }
    Electing without(0, 2, false);
    without.request(1, 0);
    cr_assert_eq(without.elections.next_deadline(), kNever, "it could not judge");
}

Test(elections, beacons_are_rare) {
    Electing mute(1, 8);
    mute.elections.want_beacon();
    cr_assert_eq(mute.multicasts(), 1U);
    mute.elections.want_beacon();
    cr_assert_eq(mute.multicasts(), 0U);
    mute.core.now = kBegin + mute.core.config.min_beacon_interval;
    mute.elections.want_beacon();
    cr_assert_eq(mute.multicasts(), 1U);
}

Test(deadlines, follow_what_was_measured) {
    const GroupConfig config = running_config(8);
    RoundTrip round_trip(config.initial_rtt, {}, config.max_silence);
    RedundancyPolicy losses(config);
    Deadlines deadlines(config, round_trip, losses);
    cr_assert_eq(deadlines.gap().value, config.initial_rtt.value / 4);
    const Nanoseconds min = config.min_silence, late = Nanoseconds::from_us(800);
    Slot slot(config, 0);
    slot.operation.kind = CollectiveKind::broadcast;
    cr_assert_eq(deadlines.silence(slot), config.lossless_silence, "nothing is lost");
    cr_assert_eq(deadlines.silence(slot, 1000).value, 1000 * min.value, "of a member with a longer timeout");
    losses.adopt({.lacking = 100, .worst = 100});
    cr_assert_eq(deadlines.silence(slot), min, "nothing was measured");
    for (int i = 0; i < 8; ++i) deadlines.on_first(slot, late);
    cr_assert_eq(deadlines.silence(slot).value, late.value + late.value / 4);
    slot.reception.ever = true;
    slot.reception.longest_gap = Nanoseconds::from_us(400);
    cr_assert_eq(deadlines.silence(slot).value, 2 * slot.reception.longest_gap.value, "by its own gaps");
    cr_assert_eq(deadlines.root_nak(3),
                 Nanoseconds{std::max(config.min_tail.value, 3 * config.initial_rtt.value / 2)});
    for (int i = 0; i < 8; ++i) deadlines.on_root_nak_answer(Nanoseconds::from_us(500));
    cr_assert_gt(deadlines.root_nak(3), Nanoseconds::from_us(500));
}

Test(pool, hands_out_each_piece_once) {
    Pool pool({}, 3, 64);
    std::set<std::byte*> pieces;
    std::byte* piece = nullptr;
    for (int i = 0; i < 3; ++i) pieces.insert(piece = pool.take());
    cr_assert(pieces.size() == 3 && !pieces.contains(nullptr));
    cr_assert_eq(pool.take(), nullptr);
    cr_assert(*pieces.rbegin() - *pieces.begin() == 128);
    std::byte* const last = piece;
    pool.give_back(piece);
    cr_assert_eq(piece, nullptr);
    pool.give_back(piece);  // empty, so without effect
    cr_assert_eq(pool.take(), last, "what was used last");
    cr_assert_eq(pool.take(), nullptr);
}

Test(slots, are_those_of_a_window_of_operations) {
    GroupConfig config = running_config(8);
    config.operation_slots = 8;
    Slots slots(config, 0);
    for (int i = 0; i < 4; ++i) slots.at(slots.post()).state = SlotState::active;
    cr_assert(slots.next() == 4 && slots.first_open() == 0 && slots.end() == 8);
    cr_assert(slots.has(0) && slots.has(7) && !slots.has(8));
    cr_assert_eq(&slots.at(9), &slots.at(1), "operation 9 will have it");
    cr_assert(slots.posted(operation_of(3)) && !slots.posted(operation_of(4)));
    cr_assert_eq(slots.find_active(operation_of(3)), &slots.at(3));
    cr_assert_eq(slots.find_active(operation_of(11)), nullptr, "it would have the same slot");
    for (const std::uint64_t done : {1U, 0U}) {
        slots.at(done).state = SlotState::finished;
        slots.close_finished();
        cr_assert_eq(slots.first_open(), done == 0 ? 2 : 0, "in their order");
    }
    cr_assert(slots.posted(operation_of(0)) && slots.find_active(operation_of(0)) == nullptr);
    for (int i = 0; i < 2; ++i) slots.release_first();
    cr_assert(!slots.has(1) && slots.has(9) && slots.end() == 10);
    cr_assert(!slots.posted(operation_of(1)) && slots.posted(operation_of(2)), "it is over");
    slots.note_early(7);
    slots.note_early(5);
    cr_assert_eq(slots.early_end(), 8);
    slots.close_all();
    cr_assert_eq(slots.first_open(), 4);
}

Test(turns, pass_from_one_operation_to_the_next) {
    using Use = Turns::Use;
    Turns turns(8);
    for (const std::uint64_t operation : {9U, 10U, 12U}) turns.mark(operation);
    std::vector<std::uint32_t> offered;
    const auto offer = [&](std::uint32_t sends) {
        offered.clear();
        return turns.next([&](std::uint32_t at) {
            offered.push_back(at % 8);
            return at % 8 == sends ? Use::sent : Use::waits;
        });
    };
    cr_assert(offer(2) && offered == (std::vector<std::uint32_t>{1, 2}));
    cr_assert(offer(2) && offered == (std::vector<std::uint32_t>{4, 1, 2}), "behind the last that sent");
    cr_assert(!offer(7) && offered.size() == 3);
    cr_assert_not(turns.next([](std::uint32_t) { return Use::idle; }));
    cr_assert(!offer(2) && offered.empty(), "until they are marked again");
    turns.mark(10);
    cr_assert(offer(2));
}

Test(notices, name_operations_first_and_each_once) {
    Notices notices{Ring<Notices::Completion>(2), Ring<OperationId>(1)};
    Effect effect;
    notices.left = true;
    notices.joined = true;
    cr_assert(notices.completions.push({operation_of(7), 0}) &&
              notices.completions.push({operation_of(8), 5}));
    cr_assert(notices.gathered.push(operation_of(3)));
    cr_assert(notices.next_operation(effect) && effect.kind == Effect::Kind::complete &&
              effect.operation == operation_of(7));
    cr_assert(notices.next_operation(effect) && effect.operation == operation_of(8) && effect.status == 5);
    cr_assert(notices.next_operation(effect) && effect.kind == Effect::Kind::gathered &&
              effect.operation == operation_of(3));
    cr_assert_not(notices.next_operation(effect));
    cr_assert(notices.next_of_group(effect, {}) && effect.kind == Effect::Kind::joined);
    cr_assert(notices.next_of_group(effect, {}) && effect.kind == Effect::Kind::left);
    cr_assert_not(notices.next_of_group(effect, {}));
    notices.failed = true;
    cr_assert(notices.next_of_group(effect, {rank_of(2), 9}) && effect.to == rank_of(2) &&
              effect.status == 9);
}
