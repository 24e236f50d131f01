// The join: when each member votes, and the result of the votes.
#include <list>

#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

using Ranks = std::vector<std::uint32_t>;

struct Election {
    const char* name;
    std::vector<Ranks> received;  // by voter; the leader itself has received every member
    Ranks deaf, mute;             // the resulting reachability map
};

std::vector<Rank> ranks_of(const Ranks& indices) {
    std::vector<Rank> ranks;
    for (std::uint32_t i : indices) ranks.push_back(rank_of(i));
    return ranks;
}

constexpr std::uint32_t kMembers = 5;

}  // namespace

TestSuite(join, .timeout = 300);

// While the probes keep all members busy, a pong is late, and would make this member wait as long for every
// later repair.
Test(join, round_trips_are_measured_when_the_probes_are_over) {
    Bench bench(config_of(1, kMembers));
    bench.engine.start(bench.now);
    bench.message({.kind = Kind::go, .sender = 0, .payload = {}, .key = {}, .epoch = {}});
    const auto probing = bench.pass(Nanoseconds::from_ms(100));
    cr_assert_gt(count(probing, Kind::probe), 0U);
    cr_assert_eq(count(probing, Kind::ping), 0U);
    bench.message(bench.map_message({.works = true, .deaf = {}, .mute = {}}));
    cr_assert_eq(count(bench.drain(), Kind::ping), 1U);
}

namespace {

// A joined member, with a record of its pings.
struct Pinging : Bench {
    explicit Pinging(const engine::GroupConfig& config) : Bench(config) {
        engine.start(now);
        message(map_message({.works = true, .deaf = {}, .mute = {}}));
        look();
    }
    // Returns the number of new pings sent.
    std::size_t look() {
        std::size_t found = 0;
        for (const Out& out : drain()) {
            if (out.kind != engine::Effect::Kind::message || out.header.kind != Kind::ping) continue;
            last = out.header;
            ++found;
        }
        pings += found;
        return found;
    }
    // Answers the last ping after this time, and returns the number of pings sent because of the answer.
    std::size_t answer(Nanoseconds after) {
        now = now + after;
        pong(last.total);
        return look();
    }
    void pong(std::uint64_t total) {
        message({.kind = Kind::pong, .sender = 0, .total = total, .payload = {}, .key = {}, .epoch = {}});
    }
    std::size_t begin_operation() {
        buffers.emplace_back(8);
        cr_assert(broadcast(0, buffers.back()).ok());
        return look();
    }
    std::int64_t round_trip_us() const { return engine.round_trip().value / 1000; }

    wire::Header last;
    std::size_t pings = 0;
    std::list<ByteString> buffers;
};

}  // namespace

// A peer that sleeps for a minute right after the join answers the ping then; this time is not a round trip
// of the network.
Test(join, a_pong_that_comes_late_is_no_round_trip) {
    Pinging late(config_of(1, kMembers));
    cr_assert_eq(late.pings, 1U);
    cr_assert_eq(late.answer(Nanoseconds::from_ms(60'000)), 1U, "it is measured again");
    cr_assert_eq(late.answer(Nanoseconds::from_us(70)), 0U);
    cr_assert_eq(late.round_trip_us(), 70);

    // A network that really is slow: the number of pings is bounded, and the measured time counts.
    Pinging far(config_of(1, kMembers));
    while (far.pings < 1000 && far.answer(Nanoseconds::from_ms(40)) > 0) {
    }
    cr_assert(far.pings > 1 && far.pings < 100);
    cr_assert_eq(far.round_trip_us(), 40'000);
}

// While a job starts, all processes are busy: the round trip is measured again with the next operations,
// until it is short enough, and the shortest counts.
Test(join, what_a_ping_took_at_the_start_is_measured_again) {
    Pinging busy(config_of(1, kMembers));
    cr_assert_eq(busy.answer(Nanoseconds::from_us(1500)), 0U);
    cr_assert_eq(busy.round_trip_us(), 1500);
    cr_assert_eq(busy.begin_operation(), 1U);
    cr_assert_eq(busy.begin_operation(), 0U, "one at a time");
    busy.answer(Nanoseconds::from_us(1800));
    cr_assert_eq(busy.round_trip_us(), 1500, "a longer one says nothing");
    cr_assert_eq(busy.begin_operation(), 1U);
    busy.answer(Nanoseconds::from_us(50));
    cr_assert_eq(busy.round_trip_us(), 50);
    cr_assert_eq(busy.begin_operation(), 0U, "no deadline would be shorter");

    Pinging far(config_of(1, kMembers));
    for (int i = 0; i < 60; ++i) {
        far.answer(Nanoseconds::from_us(400));
        far.begin_operation();
    }
    cr_assert(far.pings > 1 && far.pings < 20, "%zu pings", far.pings);
    cr_assert_eq(far.round_trip_us(), 400);
}

Test(join, a_pong_without_a_ping_has_no_effect) {
    Pinging member(config_of(1, kMembers));
    const std::uint64_t echoed = member.last.total;
    for (std::uint64_t total : {std::uint64_t{0}, echoed + 1, UINT64_MAX, std::uint64_t{1} << 63}) {
        const auto before = member.engine.counters();
        member.pong(total);
        cr_assert_eq(member.look(), 0U);
        const std::string counted = changed(before, member.engine.counters());
        cr_assert(counted == "messages_received unexpected_kind", "%s", counted.c_str());
    }
    member.answer(Nanoseconds::from_us(70));
    member.now = member.now + Nanoseconds::from_us(1);
    member.pong(echoed);
    cr_assert_eq(member.round_trip_us(), 70, "a ping is answered once");
}

// A pong changes no round trip if no ping is open, if another ping is open, or if another member was pinged.
Test(join, an_unexpected_pong_changes_nothing) {
    Bench bench(config_of(2, kMembers));
    bench.engine.start(bench.now);
    const Nanoseconds initial = bench.engine.round_trip();
    engine::Counters before = bench.engine.counters();
    const auto refused = [&](std::uint32_t sender, std::uint64_t total) {
        bench.message(
            {.kind = Kind::pong, .sender = sender, .total = total, .payload = {}, .key = {}, .epoch = {}});
        cr_assert_eq(changed(before, bench.engine.counters()), "messages_received unexpected_kind");
        cr_assert_eq(bench.engine.counters().unexpected_kind, before.unexpected_kind + 1);
        before = bench.engine.counters();
        cr_assert_eq(bench.engine.round_trip().value, initial.value);
    };
    // Times before and after all valid times, with overflowing differences.
    const std::uint64_t totals[] = {0, 1ULL << 63, UINT64_MAX, static_cast<std::uint64_t>(bench.now.value)};
    for (const std::uint64_t total : totals) refused(1, total);
    bench.message(bench.map_message({.works = true, .deaf = {}, .mute = {}}));
    cr_assert_eq(count(bench.drain(), Kind::ping), 1U);
    before = bench.engine.counters();
    const auto sent_at = static_cast<std::uint64_t>(bench.now.value);
    bench.now = bench.now + Nanoseconds::from_us(70);
    for (const std::uint64_t total : totals)
        if (total != sent_at) refused(1, total);
    refused(3, sent_at);
    bench.message({.kind = Kind::pong, .sender = 1, .total = sent_at, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(bench.engine.round_trip().value, Nanoseconds::from_us(70).value);
    bench.message({.kind = Kind::pong, .sender = 1, .total = sent_at, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(bench.engine.counters().unexpected_kind, before.unexpected_kind + 1, "it is answered");
}

Test(join, maps) {
    const Election elections[] = {
        {"all well", {{}, {0, 2, 3, 4}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {}, {}},
        {"one is deaf", {{}, {0, 2, 3, 4}, {}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {2}, {}},
        {"one receives a single other", {{}, {0, 2, 3, 4}, {4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {2}, {}},
        {"one is mute for most", {{}, {0, 2, 4}, {0, 1, 4}, {0, 1, 2, 4}, {0, 1, 2}}, {}, {3}},
        {"one is deaf and mute", {{}, {0, 2, 4}, {0, 1, 4}, {}, {0, 1, 2}}, {3}, {3}},
        {"a lost probe is no illness", {{}, {0, 2, 3}, {0, 1, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 3}}, {}, {}},
        {"only the leader receives", {{}, {}, {}, {}, {}}, {1, 2, 3, 4}, {0}},
    };
    for (const Election& election : elections) {
        Bench bench(config_of(0, kMembers));
        bench.engine.start(bench.now);
        bench.lead();
        for (std::uint32_t voter = 1; voter < kMembers; ++voter) {
            cr_assert(bench.engine.phase() == engine::Phase::voting);
            bench.vote(voter, election.received[voter]);
            if (voter < kMembers - 1) bench.vote(voter, {});  // a second vote does not count
        }
        const auto out = bench.drain();
        cr_assert_eq(count(out, Effect::Kind::joined), 1U, "%s", election.name);
        cr_assert_eq(count(out, Kind::reachability_map), kMembers - 1, "%s", election.name);
        for (const Out& o : out)
            if (o.kind == Effect::Kind::message && o.header.kind == Kind::reachability_map) {
                engine::ReachabilityMap map;
                cr_assert(engine::decode(o.payload, index_of(o.header.fragment), kMembers, map));
                cr_assert_eq(o.header.total, 1U, "%s: the multicast works", election.name);
                cr_assert(map.deaf == ranks_of(election.deaf), "%s: the deaf", election.name);
                cr_assert(map.mute == ranks_of(election.mute), "%s: the mute", election.name);
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
    cr_assert_eq(count(out, Kind::reachability_map), 2U);
    cr_assert(bench.engine.phase() == engine::Phase::active);
    cr_assert_eq(bench.engine.graph().receiver_count(), 0U);
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

Test(join, the_leader_waits_until_all_members_listen) {
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

Test(join, a_member_that_received_all_votes_without_waiting) {
    for (bool probes_first : {true, false}) {
        Bench bench(config_of(1, 3));
        bench.engine.start(bench.now);
        bench.drain();
        auto listen = [&] {
            for (std::uint32_t r : {0U, 2U})
                bench.datagram({.kind = Kind::probe, .sender = r, .payload = {}, .key = {}, .epoch = {}});
        };
        if (probes_first) listen();  // even before the go
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
                "rank 1 received only itself");
}

// A child may receive its welcome, and report ready, before its parent has a welcome.
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

Test(join, an_invalid_reachability_map_is_refused) {
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    const auto good = bench.map_message({.works = true, .deaf = ranks_of({0, 2}), .mute = {}});
    auto from_another_rank = good, too_short = good, more_deaf_than_ranks = good, no_rank = good,
         unsorted = good;
    from_another_rank.sender = 2;
    too_short.payload.pop_back();
    more_deaf_than_ranks.fragment = 3;
    no_rank.payload[7] = std::byte{3};
    unsorted.payload[3] = std::byte{2};
    for (const auto& packet : {from_another_rank, too_short, more_deaf_than_ranks, no_rank, unsorted})
        bench.message(packet);
    cr_assert(bench.engine.phase() == engine::Phase::forming);
    cr_assert_eq(bench.engine.counters().unexpected_kind, 5U);
    bench.message(good);
    cr_assert(bench.engine.phase() == engine::Phase::active);
    cr_assert_eq(bench.engine.graph().receiver_count(), 1U);
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
    // The parent may not have begun its join, and drops messages of an unknown group.
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    cr_assert_eq(count(bench.drain(), Kind::ready), 1U);
    cr_assert_geq(count(bench.pass(Nanoseconds::from_ms(100)), Kind::ready), 3U);
    bench.message({.kind = Kind::go, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.pass(Nanoseconds::from_ms(1000)), Kind::ready), 0U);
}

Test(join, a_subtree_votes_as_one) {
    auto config = config_of(1, 9);
    config.multicast = false;  // a member without multicast casts a ballot of its own
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
