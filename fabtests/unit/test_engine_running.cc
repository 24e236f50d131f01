// The engine's small parts that work after the join: verdicts and the doubts about them, deadlines, memory,
// slots, turns, notices.
#include <criterion/criterion.h>

#include <set>
#include <vector>

#include "engine/ballots.h"
#include "engine/deadlines.h"
#include "engine/doubts.h"
#include "engine/outcome.h"
#include "engine/pool.h"
#include "engine/slots.h"

using namespace mcastcoll;
using namespace mcastcoll::engine;

namespace {

constexpr Nanoseconds kBegin = Nanoseconds::from_ms(1);

GroupConfig config_of(std::uint32_t members) {
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

Test(verdicts, a_later_one_holds_from_an_operation_on) {
    Verdicts verdicts(config_of(8), two_children());
    cr_assert_not(verdicts.known() || verdicts.of(0).audible(rank_of(0)), "all is point-to-point");
    cr_assert_eq(verdicts.next_to_tell(), kNoRank);
    verdicts.take_first({.works = true, .deaf = {}, .mute = {}});
    cr_assert(verdicts.known() && verdicts.of(0).can_hear(rank_of(0), rank_of(3)));
    cr_assert(verdicts.next_to_tell() == rank_of(5) && verdicts.next_to_tell() == rank_of(6));
    cr_assert_eq(verdicts.next_to_tell(), kNoRank, "once");

    verdicts.take_next({.works = true, .deaf = {rank_of(3)}, .mute = {}}, 200);
    cr_assert(verdicts.pending() && verdicts.version() == 1 && verdicts.first_operation() == 200);
    cr_assert(verdicts.of(199).can_hear(rank_of(0), rank_of(3)));
    cr_assert_not(verdicts.of(200).can_hear(rank_of(0), rank_of(3)));
    cr_assert_eq(&verdicts.latest(), &verdicts.of(200));
    cr_assert_eq(verdicts.next_to_tell(), rank_of(5), "this one, too");
    verdicts.release_below(200);
    cr_assert(verdicts.pending(), "operation 199 is over, but 200 may not have begun anywhere");
    verdicts.release_below(201);
    cr_assert_not(verdicts.pending());
    cr_assert_not(verdicts.latest().can_hear(rank_of(0), rank_of(3)));
    cr_assert_eq(verdicts.version(), 1U);
}

Test(doubts, a_run_of_silence_is_a_reason_and_one_request_an_answer) {
    Doubts doubts(config_of(8), false);
    const Rank root = rank_of(2);
    for (std::uint32_t i = 1; i < kSilentEnough; ++i) cr_assert_not(doubts.missed(root));
    cr_assert(doubts.missed(root) && doubts.silent(root));
    doubts.heard(root);
    cr_assert_not(doubts.silent(root) || doubts.missed(root), "the run begins anew");
    doubts.request(kBegin);
    cr_assert(doubts.requested() && doubts.take_request());
    cr_assert_not(doubts.take_request(), "once");
    cr_assert_eq(doubts.elect_at(), kNever, "that is rank 0's");
    doubts.on_election(1, kBegin);
    cr_assert_not(doubts.requested());
    // What the election measures is not doubted while it lasts.
    for (std::uint32_t i = 0; i < kSilentEnough; ++i) cr_assert_not(doubts.missed(root));
    cr_assert(doubts.missed(root));
    doubts.keep_request();
    doubts.on_verdict();
    cr_assert_not(doubts.requested() || doubts.take_request(), "it was against the verdict before");
}

Test(doubts, rank_0_holds_elections_ever_less_often) {
    const GroupConfig config = config_of(8);
    Doubts doubts(config, true);
    doubts.request(kBegin);
    cr_assert_eq(doubts.elect_at(), kBegin);
    cr_assert_not(doubts.take_request(), "there is nobody to tell");
    doubts.on_election(1, kBegin);
    doubts.keep_request();
    doubts.on_same_verdict(kBegin);
    cr_assert_eq(doubts.elect_at(), kBegin + config.least_election_interval);
    doubts.on_election(2, doubts.elect_at());
    cr_assert_eq(doubts.elect_at(), kNever);
    doubts.on_same_verdict(kBegin);
    cr_assert_eq(doubts.elect_at(), kNever, "nobody has asked");
    GroupConfig deaf = config;
    deaf.multicast = false;
    Doubts without(deaf, true);
    without.request(kBegin);
    cr_assert_eq(without.elect_at(), kNever, "it could not judge");
}

Test(doubts, beacons_are_rare) {
    const GroupConfig config = config_of(8);
    Doubts doubts(config, false);
    doubts.want_beacon(kBegin);
    cr_assert(doubts.beacon_due());
    doubts.beacon_sent();
    doubts.want_beacon(kBegin);
    cr_assert_not(doubts.beacon_due());
    doubts.want_beacon(kBegin + config.least_beacon_interval);
    cr_assert(doubts.beacon_due());
}

Test(deadlines, follow_what_was_measured) {
    const GroupConfig config = config_of(8);
    RoundTrip round_trip(config.initial_rtt, {}, config.most_silence);
    Deadlines deadlines(config, round_trip);
    cr_assert_eq(deadlines.gap().value, config.initial_rtt.value / 4);
    const Nanoseconds least = config.least_silence, late = Nanoseconds::from_us(800);
    Slot slot(config, 0);
    slot.operation.kind = CollectiveKind::broadcast;
    cr_assert_eq(deadlines.silence(slot), least, "nothing was measured");
    for (int i = 0; i < 8; ++i) deadlines.on_first(slot, late);
    cr_assert_eq(deadlines.silence(slot).value, late.value + late.value / 4);
    slot.hearing.ever = true;
    slot.hearing.longest_gap = Nanoseconds::from_us(400);
    cr_assert_eq(deadlines.silence(slot).value, 2 * slot.hearing.longest_gap.value, "by its own gaps");
    cr_assert_eq(deadlines.nack(3),
                 Nanoseconds{std::max(config.least_tail.value, 3 * config.initial_rtt.value / 2)});
    for (int i = 0; i < 8; ++i) deadlines.on_nack_answer(Nanoseconds::from_us(500));
    cr_assert_gt(deadlines.nack(3), Nanoseconds::from_us(500));
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
    pool.give_back(piece);  // which is nothing
    cr_assert_eq(pool.take(), last, "what was used last");
    cr_assert_eq(pool.take(), nullptr);
}

Test(slots, are_those_of_a_window_of_operations) {
    GroupConfig config = config_of(8);
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

Test(notices, tell_of_operations_first_and_of_each_once) {
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
