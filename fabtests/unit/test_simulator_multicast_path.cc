// Multicast fails during a run: for all members, for one receiver, from one sender, for half of the members;
// and recovers. No operation is lost, the multicast path is demoted and promoted again, and every member
// agrees.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <random>
#include <utility>

#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(multicast_path, .timeout = 600);

namespace {

constexpr Nanoseconds kCutAt = Nanoseconds::from_ms(20), kHealAt = Nanoseconds::from_ms(160);

using Cut = std::function<bool(Rank from, Rank to)>;

struct Outage {
    const char* name;
    Cut cut;
    // The deaf members (who receive no multicast) and the mute members (whose multicasts no member receives)
    // of six at the end, if the outage stays.
    std::vector<std::uint32_t> deaf, mute;
    bool works;
};

const Outage kOutages[] = {
    {"all members", [](Rank, Rank) { return true; }, {}, {}, false},
    {"one receiver", [](Rank, Rank to) { return to == rank_of(4); }, {4}, {}, true},
    {"rank 0 receives nothing", [](Rank, Rank to) { return to == rank_of(0); }, {0}, {}, true},
    {"from one sender", [](Rank from, Rank) { return from == rank_of(2); }, {}, {2}, true},
    {"from rank 0", [](Rank from, Rank) { return from == rank_of(0); }, {}, {0}, true},
    {"half do not receive", [](Rank, Rank to) { return index_of(to) % 2 == 1; }, {1, 3, 5}, {}, true},
    {"one is cut off",
     [](Rank from, Rank to) { return from == rank_of(3) || to == rank_of(3); },
     {3},
     {3},
     true},
};

// A run in which the outage lasts from kCutAt until `heal`.
struct Run {
    Run(Options options, const Outage& outage, Nanoseconds heal, const std::vector<Step>& script) {
        options.faults.drop = [this, &outage, heal](const wire::Header& header, Rank to) {
            return world && world->now() >= kCutAt && world->now() < heal && outage.cut(header.sender, to);
        };
        world = std::make_unique<World>(options);
        expect_success(*world, options, script);
    }
    std::unique_ptr<World> world;
};

std::vector<std::uint32_t> indices(const std::vector<Rank>& ranks) {
    std::vector<std::uint32_t> result;
    for (Rank rank : ranks) result.push_back(index_of(rank));
    return result;
}

std::string show(const std::vector<std::uint32_t>& list) {
    return fmt::format("[{}]", fmt::join(list, " "));
}

Options outage_options(engine::Repair repair, std::uint64_t seed) {
    Options options = options_of(6, repair, seed);
    options.think = Nanoseconds::from_us(300);
    return options;
}

void expect_map(const World& world, std::uint32_t members, const Outage& outage, const Options& options) {
    for (std::uint32_t m = 0; m < members; ++m) {
        const engine::ReachabilityMap& map = world.engine(m).graph().map();
        const auto deaf = indices(map.deaf), mute = indices(map.mute);
        cr_assert(map.works == outage.works && deaf == outage.deaf && mute == outage.mute,
                  "%s: member %u has version %u: multicast %d, deaf %s, mute %s (%s)", outage.name, m,
                  world.engine(m).map_version(), map.works, show(deaf).c_str(), show(mute).c_str(),
                  replay(options).c_str());
        cr_assert_eq(world.engine(m).map_version(), world.engine(0).map_version());
    }
}

}  // namespace

Test(multicast_path, what_dies_is_demoted) {
    for (const Outage& outage : kOutages)
        for (engine::Repair repair : policies())
            for (std::uint64_t seed : seeds(1, 3)) {
                const Options options = outage_options(repair, seed);
                const Run run(options, outage, kNever, mixed_script(seed, 6, 900, 20000));
                expect_map(*run.world, 6, outage, options);
                const engine::Counters total = run.world->total();
                cr_assert_gt(total.multicast_demotions, 0U);
                cr_assert_eq(total.multicast_promotions, 0U, "%s", outage.name);
                cr_assert_leq(total.reachability_maps, 6 * 3U, "%s flapped", outage.name);
            }
}

Test(multicast_path, what_comes_back_is_promoted) {
    const Outage well{"all is well", {}, {}, {}, true};
    for (const Outage& outage : kOutages)
        for (engine::Repair repair : policies())
            for (std::uint64_t seed : seeds(1, 3)) {
                const Options options = outage_options(repair, seed);
                const Run run(options, outage, kHealAt, mixed_script(seed, 6, 2500, 20000));
                expect_map(*run.world, 6, well, options);
                const engine::Counters total = run.world->total();
                cr_assert_gt(total.multicast_demotions, 0U, "%s", outage.name);
                cr_assert_geq(total.multicast_promotions, total.multicast_demotions, "%s", outage.name);
            }
}

// No datagrams are sent on a path known to reach no member.
Test(multicast_path, a_failed_path_is_not_used) {
    for (engine::Repair repair : policies()) {
        std::uint64_t sent[2];
        for (std::uint32_t more : {0U, 1U}) {
            const Options options = outage_options(repair, 1);
            const std::vector<Step> script(600 + 600 * more, broadcast(0, 5000));
            const Run run(options, kOutages[0], kNever, script);
            sent[more] = run.world->total().datagrams_sent;
        }
        cr_assert_leq(sent[1], sent[0] + 100, "%lu datagrams for 600 broadcasts of four fragments",
                      sent[1] - sent[0]);
    }
}

// No member receives the multicasts of the only root.
Test(multicast_path, a_single_root) {
    for (std::uint32_t root : {0U, 2U}) {
        const Options options = outage_options(engine::Repair::pull, root);
        const Outage outage{
            "the only root", [root](Rank from, Rank) { return from == rank_of(root); }, {}, {root}, true};
        const std::vector<Step> script(800, broadcast(root, 100));
        const Run stays(options, outage, kNever, script);
        expect_map(*stays.world, 6, outage, options);
        const Run heals(options, outage, Nanoseconds::from_ms(100),
                        std::vector<Step>(2500, broadcast(root, 100)));
        expect_map(*heals.world, 6, {"well", {}, {}, {}, true}, options);
    }
}

namespace {

Options large_outage_options(std::uint32_t members) {
    Options options = options_of(members, engine::Repair::pull, members);
    options.think = Nanoseconds::from_ms(3);  // few operations in the time of an election
    options.check_invariants = false;
    return options;
}

}  // namespace

// Above 256 members few speak in an election, but a suspected member speaks in the very next election: when
// the member's packets stop arriving, and when packets arrive again.
Test(multicast_path, a_single_root_of_many) {
    std::vector<std::uint32_t> sizes{255, 256, 257, 1024};
    if (std::getenv("MCC_QUICK") != nullptr) sizes = {257};  // builds with sanitizers are slow
    for (const std::uint32_t members : sizes) {
        const Options options = large_outage_options(members);
        const std::uint32_t root = 8;
        for (std::uint64_t election : {1U, 2U})
            cr_assert(members <= engine::kAllProbeUpTo ||
                      engine::Speakers(members, election).place(rank_of(root)) == engine::kNoSpeaker);
        const Outage outage{
            "the only root", [](Rank from, Rank) { return from == rank_of(root); }, {}, {root}, true};
        const Run stays(options, outage, kNever, std::vector<Step>(160, broadcast(root, 100)));
        expect_map(*stays.world, members, outage, options);
        cr_assert_eq(stays.world->engine(0).counters().elections, 1U);
        const Run heals(options, outage, kHealAt, std::vector<Step>(260, broadcast(root, 100)));
        expect_map(*heals.world, members, {"well", {}, {}, {}, true}, options);
        cr_assert_eq(heals.world->engine(0).counters().elections, 2U);
    }
}

// The leader of a range relays: its failure must not be mistaken for the root's.
Test(multicast_path, a_leader_of_many) {
    const std::uint32_t members = 258, leader = members / 2;
    Options options = large_outage_options(members);
    options.group().relay = true;
    options.group().ranges = 2;
    options.group().range_of.assign(members, 0);
    std::fill(options.group().range_of.begin() + leader, options.group().range_of.end(), std::uint8_t{1});
    const Outage outage{
        "a leader", [](Rank from, Rank) { return from == rank_of(leader); }, {}, {leader}, true};
    const Run run(options, outage, kNever, std::vector<Step>(160, broadcast(3, 100)));
    expect_map(*run.world, members, outage, options);
    cr_assert_eq(run.world->engine(0).counters().elections, 1U);
}

// A mute member is never suspected unless it is a root. It is found when it speaks in turn, in the elections
// held because member 5 does not receive from the root, and is mute from then on.
Test(multicast_path, a_mute_member_of_many_is_found_in_its_turn) {
    const std::uint32_t members = 257, root = 3, mute = 8;
    Options options = large_outage_options(members);
    options.group().min_election_interval = options.group().max_election_interval = Nanoseconds::from_ms(1);
    const Outage outage{"a member that is no root",
                        [](Rank from, Rank to) {
                            return from == rank_of(mute) || (from == rank_of(root) && to == rank_of(5));
                        },
                        {},
                        {mute},
                        true};
    const Run run(options, outage, kNever, std::vector<Step>(600, broadcast(root, 100)));
    expect_map(*run.world, members, outage, options);
    cr_assert_gt(run.world->engine(0).counters().elections, mute);
    cr_assert_eq(run.world->engine(0).map_version(), 1U);
}

// Losses and bursts are not an outage.
Test(multicast_path, nothing_flaps_under_loss) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 6)) {
            Options options = outage_options(repair, seed);
            options.faults.loss = 0.2;
            World* watched = nullptr;
            if (seed % 2 == 0)
                options.faults.drop = [&watched](const wire::Header& header, Rank to) {
                    // Every 10 ms no packet arrives for a millisecond.
                    return header.kind != wire::Kind::probe && index_of(to) == 3 &&
                           watched->now().value / 1'000'000 % 10 == 0;
                };
            World world(options);
            watched = &world;
            expect_success(world, options, mixed_script(seed, 6, 600, 20000));
            cr_assert_eq(world.total().reachability_maps, 0U, "%s", replay(options).c_str());
        }
}

// Half of the packets to one member are lost: bad, but better than no multicast. The path must not be demoted
// and promoted again and again.
Test(multicast_path, a_bad_receiver_does_not_flap) {
    for (double loss : {0.5, 0.9})
        for (std::uint64_t seed : seeds(1, 3)) {
            Options options = outage_options(engine::Repair::pull, seed);
            std::mt19937_64 random(seed);
            options.faults.drop = [&random, loss](const wire::Header&, Rank to) {
                return index_of(to) == 3 && std::uniform_real_distribution<double>(0, 1)(random) < loss;
            };
            const Ran world(options, mixed_script(seed, 6, 2000, 20000));
            cr_assert_leq(world.engine(0).counters().reachability_maps, 6U, "%s", replay(options).c_str());
        }
}

Test(multicast_path, maps_that_overtake_and_are_late) {
    for (const Outage& outage : kOutages)
        for (std::uint64_t seed : seeds(1, 4)) {
            Options options = outage_options(engine::Repair::pull, seed);
            options.faults.messages_overtake = true;
            options.faults.spike = 0.05;
            options.faults.spike_delay = Nanoseconds::from_ms(seed % 2 == 0 ? 1 : 15);
            options.faults.jitter = Nanoseconds::from_us(100);
            options.in_flight = 32;
            const Run run(options, outage, Nanoseconds::from_ms(350), mixed_script(seed, 6, 2000, 20000));
            const engine::Counters total = run.world->total();
            cr_assert_gt(total.reachability_maps, 0U, "%s: %lu requests, %lu elections, until %ld us (%s)",
                         outage.name, total.election_requests_sent, total.elections, us(run.world->now()),
                         replay(options).c_str());
        }
}

// The path fails in the middle of one large broadcast, with few operations around it, so that no new
// reachability map (which members receive from which) helps.
Test(multicast_path, dies_in_a_large_broadcast) {
    for (engine::Repair repair : policies()) {
        Options options = options_of(6, repair, 1);
        options.group().lossless_silence = {};
        const Ran well(options, {broadcast(1, 8'000'000)});
        for (const Outage& outage : kOutages) {
            Options cut = options;
            World* watched = nullptr;
            cut.faults.drop = [&](const wire::Header& header, Rank to) {
                return header.kind == wire::Kind::fragment && index_of(header.fragment) >= 3000 &&
                       outage.cut(header.sender, to) && watched != nullptr;
            };
            World world(cut);
            watched = &world;
            expect_success(world, cut, {broadcast(1, 8'000'000)});
            cr_assert_leq(world.duration(0).value, 6 * well.duration(0).value, "%s: %ld us instead of %ld us",
                          outage.name, us(world.duration(0)), us(well.duration(0)));
        }
    }
}
