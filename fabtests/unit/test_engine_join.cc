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

Ranks bits_of(const ByteString& bytes, std::size_t offset, std::uint32_t members) {
    Ranks ranks;
    for (std::uint32_t i = 0; i < members; ++i)
        if ((bytes[offset + i / 8] >> (i % 8) & std::byte{1}) != std::byte{0}) ranks.push_back(i);
    return ranks;
}

constexpr std::uint32_t kMembers = 5;

}  // namespace

TestSuite(join, .timeout = 30);

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
                cr_assert(bits_of(o.payload, 0, kMembers) == election.deaf, "%s: the deaf", election.name);
                cr_assert(bits_of(o.payload, 1, kMembers) == election.mute, "%s: the mute", election.name);
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
            cr_assert(o.payload == ByteString(1), "nobody was heard");
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

Test(join, a_verdict_of_another_size_is_refused) {
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    for (std::size_t size : {0U, 1U, 3U, 64U})
        bench.message({.kind = Kind::verdict, .payload = ByteString(size), .key = {}, .epoch = {}});
    cr_assert(bench.engine.phase() == engine::Phase::forming);
    cr_assert_eq(bench.engine.counters().unexpected_kind, 4U);
}
