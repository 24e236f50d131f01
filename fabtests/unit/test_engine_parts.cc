// The engine's small parts, each for itself: what everybody has finished, leaving, who is to be watched,
// polls.
#include <criterion/criterion.h>

#include <vector>

#include "engine/checkpoint.h"
#include "engine/elections.h"
#include "engine/failure_detector.h"
#include "engine/outcome.h"

using namespace mcastcoll;
using namespace mcastcoll::engine;

namespace {

constexpr Nanoseconds kSoon = Nanoseconds::from_us(100), kLate = Nanoseconds::from_ms(10);

RankList ranks(std::initializer_list<std::uint32_t> list) {
    RankList result;
    for (const std::uint32_t rank : list) result.add(rank_of(rank));
    return result;
}

// What a watermark says next, with nobody told by multicast.
std::vector<Watermark::Word> all_words(Watermark& mark, bool heard = false) {
    std::vector<Watermark::Word> words;
    for (Watermark::Word word; mark.next(word, [heard](Rank) { return heard; });) words.push_back(word);
    return words;
}

bool is(const Watermark::Word& word, wire::Kind kind, std::uint32_t to, std::uint64_t number) {
    return word.kind == kind && word.to == rank_of(to) && word.number == number;
}

}  // namespace

Test(watermark, rises_when_all_below_have_finished) {
    Watermark root(ranks({1, 2}), kNoRank);
    cr_assert_eq(root.agree(8), 0U, "nobody else has");
    root.on_up(0, 8);
    cr_assert_eq(root.agree(8), 0U);
    root.on_up(1, 4);
    cr_assert_eq(root.agree(8), 4U);
    cr_assert_eq(root.agree(8), 0U, "that is known");
    root.rise_to(4);
    cr_assert_eq(root.opened(), 4U);
    const auto words = all_words(root);
    cr_assert_eq(words.size(), 2U);
    cr_assert(is(words[0], wire::Kind::watermark_down, 1, 4) &&
              is(words[1], wire::Kind::watermark_down, 2, 4));
    cr_assert(all_words(root).empty(), "once");
    cr_assert_eq(root.behind(8).count, 1U);
    cr_assert(root.behind(8).contains(rank_of(2)));
    // What comes late and doubled changes nothing.
    root.on_up(1, 2);
    cr_assert_eq(root.agree(8), 0U);
}

Test(watermark, goes_up_and_comes_down_through_others) {
    Watermark middle(ranks({3}), rank_of(0));
    middle.on_up(0, 6);
    cr_assert_eq(middle.agree(4), 0U, "only rank 0 knows what all have");
    auto words = all_words(middle);
    cr_assert(words.size() == 1 && is(words[0], wire::Kind::watermark_up, 0, 4));
    cr_assert(middle.take(4, true, kSoon));
    middle.rise_to(4);
    words = all_words(middle);
    cr_assert(words.size() == 1 && is(words[0], wire::Kind::watermark_down, 3, 4));
    cr_assert_not(middle.take(4, true, kSoon), "no news");
    cr_assert_not(middle.take(2, true, kSoon), "old");
}

Test(watermark, waits_for_the_verdict_that_it_was_told_with) {
    Watermark leaf(ranks({}), rank_of(0));
    cr_assert_eq(leaf.take_parked(), 0U);
    cr_assert_not(leaf.take(4, false, kSoon));
    cr_assert_not(leaf.take(8, false, kSoon));
    cr_assert_eq(leaf.take_parked(), 8U);
    cr_assert_eq(leaf.take_parked(), 0U, "once");
}

Test(watermark, who_hears_the_multicast_is_not_told_but_may_ask) {
    Watermark root(ranks({1}), kNoRank);
    root.on_up(0, 4);
    cr_assert_eq(root.agree(4), 4U);
    root.set_cast_due(true);
    root.rise_to(4);
    cr_assert_eq(root.to_cast(), 4U);
    root.set_cast_due(false);
    cr_assert_eq(root.to_cast(), 0U);
    cr_assert(all_words(root, true).empty());
    root.on_ask(0, 0);
    const auto words = all_words(root, true);
    cr_assert(words.size() == 1 && is(words[0], wire::Kind::watermark_down, 1, 4));
}

Test(watermark, asks_once_for_each_and_answers_when_it_knows) {
    Watermark middle(ranks({3}), rank_of(0));
    middle.await(kSoon, kSoon, kLate);
    cr_assert(middle.next_deadline() == kSoon + kSoon, "as early as may be while nothing was measured");
    middle.on_timeout(middle.next_deadline());
    auto words = all_words(middle);
    cr_assert(words.size() == 1 && is(words[0], wire::Kind::watermark_ask, 0, 0));
    middle.await(kLate, kSoon, kLate);
    cr_assert(middle.next_deadline() == kNever, "it has asked");
    middle.on_ask(0, 0);
    cr_assert(all_words(middle).empty(), "it does not know");
    cr_assert(middle.take(4, true, kLate));
    middle.rise_to(4);
    words = all_words(middle);
    cr_assert_geq(words.size(), 1U);
    cr_assert(is(words[0], wire::Kind::watermark_down, 3, 4));
    // A child that knows no more than this one has it ask onward.
    middle.on_ask(0, 4);
    words = all_words(middle);
    cr_assert(words.size() == 1 && is(words[0], wire::Kind::watermark_ask, 0, 4));
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

namespace {

GroupConfig config_of(std::uint32_t self, std::uint32_t members, std::uint32_t probes = 1) {
    GroupConfig config;
    config.self = rank_of(self);
    config.members = members;
    config.probes = probes;
    return config;
}

}  // namespace

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
