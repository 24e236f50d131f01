// The join: who votes when, and what comes of the votes.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

using Ranks = std::vector<std::uint32_t>;

struct Election {
    const char* name;
    std::vector<Ranks> heard;  // by voter; the leader's own vote is that it hears everybody
    Ranks deaf, mute;          // the verdict
};

std::vector<Rank> ranks_of(const Ranks& indices) {
    std::vector<Rank> ranks;
    for (std::uint32_t i : indices) ranks.push_back(rank_of(i));
    return ranks;
}

constexpr std::uint32_t kMembers = 5;

}  // namespace

TestSuite(join, .timeout = 300);

// While the probes keep everybody busy an answer is late, and would teach this member to wait as long for
// repairs ever after.
Test(join, round_trips_are_measured_when_the_probes_are_over) {
    Bench bench(config_of(1, kMembers));
    bench.engine.start(bench.now);
    bench.message({.kind = Kind::go, .sender = 0, .payload = {}, .key = {}, .epoch = {}});
    const auto probing = bench.pass(Nanoseconds::from_ms(100));
    cr_assert_gt(count(probing, Kind::probe), 0U);
    cr_assert_eq(count(probing, Kind::ping), 0U);
    bench.message(bench.verdict_message({.lane = true, .deaf = {}, .mute = {}}));
    cr_assert_eq(count(bench.drain(), Kind::ping), 1U);
}

// Who sleeps for a minute right after the join answers the ping then; that is no round trip of the network.
Test(join, a_pong_that_comes_late_is_no_round_trip) {
    const auto pong = [](Bench& bench, const Out& ping) {
        bench.message({.kind = Kind::pong,
                       .sender = 0,
                       .total = ping.header.total,
                       .payload = {},
                       .key = {},
                       .epoch = {}});
    };
    const auto pings = [](const std::vector<Out>& sent) {
        std::vector<Out> found;
        for (const Out& out : sent)
            if (out.kind == engine::Effect::Kind::message && out.header.kind == Kind::ping)
                found.push_back(out);
        return found;
    };
    const auto join = [&](Bench& bench) {
        bench.engine.start(bench.now);
        bench.message(bench.verdict_message({.lane = true, .deaf = {}, .mute = {}}));
        return pings(bench.drain());
    };
    Bench late(config_of(1, kMembers));
    auto sent = join(late);
    cr_assert_eq(sent.size(), 1U);
    late.now = late.now + Nanoseconds::from_ms(60'000);
    pong(late, sent[0]);
    sent = pings(late.drain());
    cr_assert_eq(sent.size(), 1U, "it is measured again");
    late.now = late.now + Nanoseconds::from_us(70);
    pong(late, sent[0]);
    cr_assert_eq(pings(late.drain()).size(), 0U);
    cr_assert_eq(late.engine.round_trip().value, Nanoseconds::from_us(70).value);

    // A network that really is that slow: a bounded number of pings, and what it is counts.
    Bench far(config_of(1, kMembers));
    std::size_t asked = 0;
    for (sent = join(far); !sent.empty() && asked < 1000; sent = pings(far.drain())) {
        ++asked;
        far.now = far.now + Nanoseconds::from_ms(40);
        pong(far, sent[0]);
    }
    cr_assert(asked > 1 && asked < 100);
    cr_assert_eq(far.engine.round_trip().value, Nanoseconds::from_ms(40).value);
}

Test(join, verdicts) {
    const Election elections[] = {
        {"all well", {{}, {0, 2, 3, 4}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {}, {}},
        {"one is deaf", {{}, {0, 2, 3, 4}, {}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {2}, {}},
        {"one hears a single other", {{}, {0, 2, 3, 4}, {4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {2}, {}},
        {"one is mute for most", {{}, {0, 2, 4}, {0, 1, 4}, {0, 1, 2, 4}, {0, 1, 2}}, {}, {3}},
        {"one is deaf and mute", {{}, {0, 2, 4}, {0, 1, 4}, {}, {0, 1, 2}}, {3}, {3}},
        {"a lost probe is no illness", {{}, {0, 2, 3}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {}, {}},
        {"only the leader hears", {{}, {}, {}, {}, {}}, {1, 2, 3, 4}, {0}},
    };
    for (const Election& election : elections) {
        Bench bench(config_of(0, kMembers));
        bench.engine.start(bench.now);
        bench.lead();
        for (std::uint32_t voter = 1; voter < kMembers; ++voter) {
            cr_assert(bench.engine.phase() == engine::Phase::voting);
            bench.vote(voter, election.heard[voter]);
            if (voter < kMembers - 1) bench.vote(voter, {});  // nobody votes twice
        }
        const auto out = bench.drain();
        cr_assert_eq(count(out, Effect::Kind::joined), 1U, "%s", election.name);
        cr_assert_eq(count(out, Kind::verdict), kMembers - 1, "%s", election.name);
        for (const Out& o : out)
            if (o.kind == Effect::Kind::message && o.header.kind == Kind::verdict) {
                engine::Verdict verdict;
                cr_assert(engine::decode(o.payload, index_of(o.header.fragment), kMembers, verdict));
                cr_assert_eq(o.header.total, 1U, "%s: the lane", election.name);
                cr_assert(verdict.deaf == ranks_of(election.deaf), "%s: the deaf", election.name);
                cr_assert(verdict.mute == ranks_of(election.mute), "%s: the mute", election.name);
            }
    }
}

Test(join, a_leader_without_a_socket_decides_for_point_to_point_at_once) {
    auto config = config_of(0, 3);
    config.multicast = false;
    Bench bench(config);
    bench.engine.start(bench.now);
    for (std::uint32_t r : {1U, 2U})
        bench.message({.kind = Kind::ready, .sender = r, .payload = {}, .key = {}, .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::multicast), 0U);
    cr_assert_eq(count(out, Kind::go), 0U);
    cr_assert_eq(count(out, Kind::verdict), 2U);
    cr_assert(bench.engine.phase() == engine::Phase::active);
    cr_assert_eq(bench.engine.graph().hearing_count(), 0U);
}

Test(join, a_member_without_a_socket_votes_at_once) {
    auto config = config_of(1, 3);
    config.multicast = false;
    Bench bench(config);
    bench.engine.start(bench.now);
    cr_assert_eq(count(bench.drain(), Kind::ready), 1U);
    bench.message({.kind = Kind::go, .payload = {}, .key = {}, .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::vote), 1U);
    cr_assert_eq(count(out, Effect::Kind::multicast), 0U);
}

Test(join, the_leader_waits_until_everybody_listens) {
    Bench bench(config_of(0, 3));
    bench.engine.start(bench.now);
    for (int i = 0; i < 3; ++i)
        bench.message({.kind = Kind::ready, .sender = 1, .payload = {}, .key = {}, .epoch = {}});
    cr_assert(bench.drain().empty(), "one member's ready counts once");
    bench.message({.kind = Kind::ready, .sender = 2, .payload = {}, .key = {}, .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::go), 2U);
    cr_assert_eq(count(out, Kind::probe), 1U);
}

Test(join, who_has_heard_all_votes_without_waiting) {
    for (bool probes_first : {true, false}) {
        Bench bench(config_of(1, 3));
        bench.engine.start(bench.now);
        bench.drain();
        auto listen = [&] {
            for (std::uint32_t r : {0U, 2U})
                bench.datagram({.kind = Kind::probe, .sender = r, .payload = {}, .key = {}, .epoch = {}});
        };
        if (probes_first) listen();  // even before this member is told to go
        bench.message({.kind = Kind::go, .payload = {}, .key = {}, .epoch = {}});
        auto out = bench.pass(Nanoseconds::from_ms(5));
        cr_assert_eq(count(out, Kind::probe), bench.engine.config().probes);
        if (!probes_first) listen();
        for (const Out& o : bench.drain()) out.push_back(o);
        cr_assert_eq(count(out, Kind::vote), 1U);
    }
}

Test(join, silence_ends_with_a_vote) {
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    bench.message({.kind = Kind::go, .payload = {}, .key = {}, .epoch = {}});
    const auto out = bench.pass(bench.engine.config().probe_settle);
    cr_assert_eq(count(out, Kind::vote), 1U);
    for (const Out& o : out)
        if (o.kind == Effect::Kind::message && o.header.kind == Kind::vote)
            cr_assert(
                o.payload == (ByteString{std::byte{}, std::byte{}, std::byte{}, std::byte{1}, std::byte{2}}),
                "rank 1 heard nobody but itself");
}

// A child may have its welcome, and say so, before its parent has one.
Test(join, a_child_may_be_ready_first) {
    for (std::uint32_t self : {0U, 1U}) {
        Bench bench(config_of(self, self == 0 ? 3 : 8));
        const std::uint32_t children[2][2] = {{1, 2}, {5, 6}};
        bench.message(
            {.kind = Kind::ready, .sender = children[self][0], .payload = {}, .key = {}, .epoch = {}});
        bench.message(
            {.kind = Kind::ready, .sender = children[self][1], .payload = {}, .key = {}, .epoch = {}});
        if (self == 1)
            bench.message({.kind = Kind::ready, .sender = 7, .payload = {}, .key = {}, .epoch = {}});
        cr_assert(bench.drain().empty(), "it has not started itself");
        bench.engine.start(bench.now);
        cr_assert_eq(count(bench.drain(), self == 0 ? Kind::go : Kind::ready), self == 0 ? 2U : 1U);
    }
}

Test(join, a_group_of_one_is_ready_at_once) {
    Bench bench(config_of(0, 1));
    bench.engine.start(bench.now);
    const auto out = bench.drain();
    cr_assert_eq(out.size(), 1U);
    cr_assert(out[0].kind == Effect::Kind::joined);
    ByteString buffer(100000);
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert(bench.barrier().ok());
    cr_assert_eq(bench.drain().size(), 2U);
}

Test(join, a_verdict_that_makes_no_sense_is_refused) {
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    const auto good = bench.verdict_message({.lane = true, .deaf = ranks_of({0, 2}), .mute = {}});
    auto from_a_stranger = good, too_short = good, more_deaf_than_ranks = good, no_rank = good,
         unsorted = good;
    from_a_stranger.sender = 2;
    too_short.payload.pop_back();
    more_deaf_than_ranks.fragment = 3;
    no_rank.payload[7] = std::byte{3};
    unsorted.payload[3] = std::byte{2};
    for (const auto& packet : {from_a_stranger, too_short, more_deaf_than_ranks, no_rank, unsorted})
        bench.message(packet);
    cr_assert(bench.engine.phase() == engine::Phase::forming);
    cr_assert_eq(bench.engine.counters().unexpected_kind, 5U);
    bench.message(good);
    cr_assert(bench.engine.phase() == engine::Phase::active);
    cr_assert_eq(bench.engine.graph().hearing_count(), 1U);
}

Test(join, go_and_ready_count_only_along_the_tree) {
    Bench bench(config_of(1, 9));  // its children are 5 to 8
    bench.engine.start(bench.now);
    for (std::uint32_t r : {0U, 2U, 5U, 5U, 6U, 7U})
        bench.message({.kind = Kind::ready, .sender = r, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.drain(), Kind::ready), 0U, "8 is not ready");
    cr_assert_eq(bench.engine.counters().unexpected_kind, 2U);
    bench.message({.kind = Kind::ready, .sender = 8, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.drain(), Kind::ready), 1U);
    bench.message({.kind = Kind::go, .sender = 2, .payload = {}, .key = {}, .epoch = {}});
    cr_assert(bench.engine.phase() == engine::Phase::forming);
    bench.message({.kind = Kind::go, .sender = 0, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.drain(), Kind::go), 4U);
}

Test(join, ready_is_said_until_go_comes) {
    // The parent may not have begun its join: what it cannot place is lost.
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    cr_assert_eq(count(bench.drain(), Kind::ready), 1U);
    cr_assert_geq(count(bench.pass(Nanoseconds::from_ms(100)), Kind::ready), 3U);
    bench.message({.kind = Kind::go, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.pass(Nanoseconds::from_ms(1000)), Kind::ready), 0U);
}

Test(join, a_subtree_votes_as_one) {
    auto config = config_of(1, 9);
    config.multicast = false;  // which is a ballot of its own
    Bench bench(config);
    bench.join_as_far_as_voting();
    for (std::uint32_t r : {5U, 6U, 7U}) bench.vote(r, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    cr_assert_eq(count(bench.drain(), Kind::vote), 0U, "8 has not voted");
    bench.vote(8, {0, 2});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::vote), 1U);
    const std::size_t ballot = 4 + 2;
    cr_assert_eq(out[0].payload.size(), 2 * ballot, "rank 1's own and rank 8's");
    cr_assert(out[0].payload[3] == std::byte{1} && out[0].payload[ballot + 3] == std::byte{8});
}
