// The engine's small parts, each for itself: what everybody has finished, leaving, who is to be watched,
// polls.
#include <criterion/criterion.h>

#include <tuple>
#include <vector>

#include "engine/checkpoint.h"
#include "engine/elections.h"
#include "engine/failure_detector.h"
#include "engine/outcome.h"

using namespace mcastcoll;
using namespace mcastcoll::engine;

namespace {

constexpr Nanoseconds kSoon = Nanoseconds::from_us(100), kLate = Nanoseconds::from_ms(10);

GroupConfig config_of(std::uint32_t self, std::uint32_t members, std::uint32_t probes = 1) {
    GroupConfig config;
    config.self = rank_of(self);
    config.members = members;
    config.probes = probes;
    return config;
}

RankList ranks(std::initializer_list<std::uint32_t> list) {
    RankList result;
    for (const std::uint32_t rank : list) result.add(rank_of(rank));
    return result;
}

// A member that agrees on every fourth operation, in a tree of this arity.
struct Member {
    Member(std::uint32_t self, std::uint32_t members, std::uint32_t arity = 1, Repair repair = Repair::pull)
        : core([&] {
              GroupConfig config = config_of(self, members);
              config.tree_arity = arity;
              config.checkpoint_every = config.channels = 4;
              config.repair = repair;
              return config;
          }()) {
        core.now = kSoon;
        core.verdicts.take_first({.works = true, .deaf = {}, .mute = {}});
        core.phase = Phase::active;
    }
    void finish(std::uint64_t operations) {
        while (core.slots.next() < operations)
            core.slots.take(operation_of(core.slots.post())).state = SlotState::finished;
        core.slots.close_finished();
        checkpoint.settle();
    }
    static wire::Header header(wire::Kind kind, std::uint32_t from, std::uint64_t number,
                               std::uint32_t verdict = 0) {
        wire::Header header;
        header.kind = kind;
        header.sender = rank_of(from);
        header.operation = operation_of(number);
        header.fragment = fragment_of(verdict);
        return header;
    }
    void up(std::uint32_t child, std::uint64_t number) {
        checkpoint.on_up(header(wire::Kind::watermark_up, child, number));
        checkpoint.settle();
    }
    void told(std::uint64_t number, std::uint32_t verdict = 0) {
        checkpoint.on_told(header(wire::Kind::watermark_down, index_of(core.parent), number, verdict),
                           core.parent);
    }
    void asked(std::uint32_t child, std::uint64_t above) {
        checkpoint.on_ask(header(wire::Kind::watermark_ask, child, above));
    }
    // What it says next, as "kind to number" each.
    using Words = std::vector<std::tuple<wire::Kind, std::uint32_t, std::uint64_t>>;
    Words words() {
        Words all;
        for (Effect effect; checkpoint.next_message(effect);) {
            const wire::Header said = wire::decode(effect.header).header;
            all.emplace_back(said.kind, index_of(effect.to), number_of(said.operation));
        }
        return all;
    }

    Core core;
    Checkpoint checkpoint{core};
};

using Words = Member::Words;
constexpr auto kUp = wire::Kind::watermark_up, kDown = wire::Kind::watermark_down,
               kAsk = wire::Kind::watermark_ask;

}  // namespace

Test(watermark, rises_when_all_below_have_finished) {
    Member root(0, 3, 2);
    root.finish(8);
    root.up(1, 8);
    cr_assert(root.checkpoint.opened() == 0 && root.words().empty(), "one has not");
    root.up(2, 4);
    cr_assert_eq(root.checkpoint.opened(), 4U);
    cr_assert(root.words() == (Words{{kDown, 1, 4}, {kDown, 2, 4}}));
    cr_assert(root.words().empty(), "once");
    cr_assert_eq(root.checkpoint.behind().count, 1U);
    cr_assert(root.checkpoint.behind().contains(rank_of(2)));
    root.up(2, 2);
    cr_assert(root.checkpoint.opened() == 4 && root.words().empty(), "late and doubled");
}

Test(watermark, goes_up_and_comes_down_through_others) {
    Member middle(1, 3);
    middle.up(2, 8);
    middle.finish(6);
    cr_assert(middle.words() == (Words{{kUp, 0, 4}}), "in whole checkpoints");
    cr_assert_eq(middle.checkpoint.opened(), 0U, "only rank 0 knows what all have");
    middle.told(4);
    cr_assert_eq(middle.checkpoint.opened(), 4U);
    cr_assert(middle.words() == (Words{{kDown, 2, 4}}));
    for (const std::uint64_t old : {4U, 2U}) middle.told(old);
    cr_assert(middle.checkpoint.opened() == 4 && middle.words().empty(), "no news");
}

Test(watermark, waits_for_the_verdict_that_it_was_told_with) {
    Member leaf(1, 2);
    leaf.finish(8);
    for (const std::uint64_t number : {4U, 8U}) leaf.told(number, 1);
    leaf.checkpoint.settle();
    cr_assert_eq(leaf.checkpoint.opened(), 0U);
    leaf.core.verdicts.take_next({.works = false, .deaf = {}, .mute = {}}, 300);
    leaf.checkpoint.settle();
    cr_assert_eq(leaf.checkpoint.opened(), 8U);
}

Test(watermark, who_hears_the_multicast_is_not_told_but_may_ask) {
    Member root(0, 2, 1, Repair::sync);
    root.finish(4);
    root.up(1, 4);
    Effect effect;
    cr_assert(root.checkpoint.next_multicast(effect) &&
              wire::decode(effect.header).header.operation == operation_of(4));
    cr_assert_not(root.checkpoint.next_multicast(effect), "once");
    cr_assert(root.words().empty());
    root.asked(1, 0);
    cr_assert(root.words() == (Words{{kDown, 1, 4}}));
}

Test(watermark, asks_once_for_each_and_answers_when_it_knows) {
    Member middle(1, 3);
    middle.finish(4);
    middle.checkpoint.await();
    const Nanoseconds least =
        std::max(middle.core.config.least_silence, Nanoseconds{2 * middle.core.round_trip.mean().value});
    cr_assert(middle.checkpoint.next_deadline() == kSoon + least, "while nothing was measured");
    middle.core.now = middle.checkpoint.next_deadline();
    middle.checkpoint.on_timeout();
    cr_assert(middle.words() == (Words{{kAsk, 0, 0}}));
    middle.core.now = kLate;
    middle.checkpoint.await();
    cr_assert(middle.checkpoint.next_deadline() == kNever, "it has asked");
    middle.asked(2, 0);
    cr_assert(middle.words().empty(), "it does not know");
    middle.told(4);
    cr_assert_eq(middle.words().front(), (std::tuple{kDown, 2U, std::uint64_t{4}}));
    // A child that knows no more than this one has it ask onward.
    middle.asked(2, 4);
    cr_assert(middle.words() == (Words{{kAsk, 0, 4}}));
}

Test(departure, up_when_all_below_have_left_and_down_again) {
    Departure middle(ranks({3, 4}), rank_of(0));
    wire::Kind kind{};
    Rank to{};
    middle.on_idle();
    cr_assert_not(middle.closing() || middle.next(kind, to));
    cr_assert_not(middle.on_everybody_left(), "it has not");
    middle.on_child_left(0);
    middle.close();
    middle.on_idle();
    cr_assert(middle.closing());
    cr_assert_not(middle.next(kind, to), "one child is still there");
    middle.on_child_left(1);
    middle.on_idle();
    cr_assert(middle.next(kind, to) && kind == wire::Kind::leave_up && to == rank_of(0));
    cr_assert_not(middle.next(kind, to) || middle.over());
    cr_assert(middle.on_everybody_left());
    cr_assert(middle.next(kind, to) && kind == wire::Kind::leave_down && to == rank_of(3));
    cr_assert_not(middle.over(), "one child does not know");
    cr_assert(middle.next(kind, to) && to == rank_of(4));
    cr_assert(middle.over());
}

Test(departure, rank_0_alone_leaves_at_once) {
    Departure alone(ranks({}), kNoRank);
    alone.on_idle();
    cr_assert_not(alone.over());
    alone.close();
    alone.on_idle();
    cr_assert(alone.over());
}

Test(watch_list, asks_once_as_far_as_it_remembers) {
    WatchList list(2);
    cr_assert_eq(list.take(), kNoRank);
    for (const std::uint32_t rank : {5U, 5U, 6U, 5U}) list.ask(rank_of(rank));
    cr_assert_eq(list.take(), rank_of(5));
    cr_assert_eq(list.take(), rank_of(6));
    cr_assert_eq(list.take(), kNoRank);
    list.ask(rank_of(7));  // 5 falls out
    list.ask(rank_of(5));
    cr_assert_eq(list.take(), rank_of(7));
    cr_assert_eq(list.take(), rank_of(5));
    cr_assert_eq(list.take(), kNoRank);
}

Test(poll, rank_0_has_a_result_when_all_have_been_heard_and_have_voted) {
    const GroupConfig config = config_of(0, 3), below = config_of(1, 3);
    Poll root(config, ranks({1, 2}), kNoRank), child(below, ranks({}), rank_of(0));
    root.begin(0, kSoon);
    cr_assert(root.probing() && root.next_go() == rank_of(1) && root.next_go() == rank_of(2));
    cr_assert_eq(root.next_go(), kNoRank);
    cr_assert_eq(root.next_probe(), 1U);
    root.on_probe(0, rank_of(1), false);
    root.on_probe(0, rank_of(2), false);
    cr_assert(root.probing(), "its own probe has not gone out");
    root.probe_sent();
    cr_assert_not(root.probing());
    cr_assert_not(root.closed() || root.take_result(), "nobody else has voted");
    child.begin(0, kSoon);
    child.probe_sent();
    child.on_timeout(child.next_deadline());  // it hears nothing
    cr_assert(child.closed() && child.take_vote());
    cr_assert_not(child.take_vote(), "twice");
    cr_assert_not(root.on_vote(0, 1, child.ballots().bytes(), false), "another poll");
    cr_assert(root.on_vote(0, 0, child.ballots().bytes(), false));
    cr_assert_not(root.on_vote(0, 0, child.ballots().bytes(), false), "twice");
    cr_assert(root.on_vote(1, 0, {}, false));
    cr_assert(root.closed() && root.take_result());
    cr_assert(root.ballots().judge().deaf == (std::vector<Rank>{rank_of(1)}));
}

Test(poll, probes_of_the_next_may_come_before_its_go) {
    const GroupConfig config = config_of(1, 2);
    Poll leaf(config, ranks({}), rank_of(0));
    leaf.on_probe(0, rank_of(0), false);
    leaf.begin(0, kSoon);
    leaf.probe_sent();
    cr_assert(leaf.closed() && leaf.take_vote(), "the only other one was heard before");
    leaf.on_probe(2, rank_of(0), true);  // not the next
    leaf.on_probe(1, rank_of(0), true);
    leaf.begin(1, kLate);
    leaf.probe_sent();
    cr_assert(leaf.take_vote());
    leaf.begin(2, kLate);
    leaf.probe_sent();
    cr_assert_not(leaf.take_vote(), "nobody was heard in this one");
}

Test(poll, several_probes_go_out_one_by_one_and_one_that_is_due_after_its_end) {
    const GroupConfig config = config_of(1, 2, 3);
    Poll leaf(config, ranks({}), rank_of(0));
    leaf.begin(0, kSoon);
    for (const std::uint32_t probe : {1U, 2U}) {
        cr_assert_eq(leaf.next_probe(), probe);
        leaf.probe_sent();
        cr_assert_eq(leaf.next_probe(), 0U);
        leaf.on_timeout(leaf.next_deadline());
    }
    cr_assert_eq(leaf.next_probe(), 3U);
    leaf.stop();
    cr_assert_eq(leaf.next_probe(), 3U, "others still listen");
    cr_assert(leaf.closed() && leaf.next_deadline() == kNever);
    cr_assert_not(leaf.take_vote());
}
