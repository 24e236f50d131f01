// A member ten times slower than the rest, with a socket for a bounded number of datagrams. Datagrams beyond
// its capacity must not be sent again and again, and no other member may starve.
#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(pacing, .timeout = 600);

namespace {

constexpr std::uint32_t kMembers = 6, kSlow = 4, kWindow = 128;
constexpr std::uint64_t kLarge = 10'000'000;

Options slow_options(engine::Repair repair, std::uint64_t seed) {
    Options options = options_of(kMembers, repair, seed);
    options.group().window = 128;
    options.model = {};
    options.model.socket_buffer = kWindow;
    options.faults.slow = {{kSlow, 10}};
    return options;
}

double repaired_share(const World& world, std::uint32_t member) {
    const engine::Counters& counters = world.engine(member).counters();
    return static_cast<double>(counters.fragments_repaired) /
           static_cast<double>(counters.fragments_repaired + counters.fragments_by_multicast);
}

}  // namespace

// The fast members wait for the slow member now and then, and must not mistake this wait for an outage: no
// fragment may be requested by message before the root's multicast.
Test(pacing, a_slow_member_does_not_turn_multicast_into_repair) {
    for (engine::Repair repair : {engine::Repair::pull, engine::Repair::sync, engine::Repair::automatic})
        for (std::uint64_t seed : seeds(1, 2)) {
            const Options options = slow_options(repair, seed);
            const Ran world(options, {broadcast(0, kLarge), broadcast(0, kLarge)});
            for (std::uint32_t member = 0; member < kMembers; ++member)
                if (member != 0)
                    cr_assert_leq(repaired_share(world, member), 0.01, "%.3f of member %u (%s)",
                                  repaired_share(world, member), member, replay(options).c_str());
        }
}

// The root pauses when its window is full. If a member then lacks the last fragments, the root stays stopped,
// and no member receives anything. Repairs must then consist mostly of lost fragments rather than of
// fragments that the root has not multicast yet.
Test(pacing, losses_do_not_turn_multicast_into_repair) {
    double lost = 0, repaired = 0;
    for (std::uint64_t seed : seeds(1, 4)) {
        Options options = slow_options(engine::Repair::pull, seed);
        options.group().window = 744;
        options.model.socket_buffer = 3000;
        options.faults.loss = 0.01;
        const Ran world(options, {broadcast(0, kLarge), broadcast(0, kLarge)});
        lost += options.faults.loss * (kMembers - 1) * 2 * kLarge / options.group().fragment_bytes;
        repaired += static_cast<double>(world.total().fragments_repaired);
    }
    cr_assert_leq(repaired, 4 * lost, "%.0f repaired, %.0f lost", repaired, lost);
}

// Without a slow member the same operations take a fraction of the time: so the tests above wait for the slow
// member.
Test(pacing, only_a_slow_member_makes_it_slow) {
    const Options options = slow_options(engine::Repair::pull, 1);
    Options fast = options;
    fast.faults.slow.clear();
    const Ran slowed(options, {broadcast(0, kLarge)}), well(fast, {broadcast(0, kLarge)});
    cr_assert_gt(slowed.duration(0).value, 3 * well.duration(0).value);
}

// Small broadcasts of the group, and a second group on the same hosts, complete while the large broadcast is
// under way.
Test(pacing, no_operation_starves) {
    for (engine::Repair repair : policies()) {
        Options options = slow_options(repair, 1);
        std::vector<Step> large(11, broadcast(1, 8));
        large[0] = broadcast(0, kLarge);
        EngineSetup other{.config = options.group(), .script = std::vector<Step>(50, broadcast(2, 100))};
        other.config.key = GroupKey{99};
        options.in_flight = 11;
        options.setups.push_back(other);
        const Ran world(options, large);
        const Nanoseconds whole = world.duration(0);
        cr_assert_leq(world.span(1, 10).value, whole.value / 4, "small ones behind the large one");
        cr_assert_leq(world.span(0, 49, 1).value, whole.value / 2, "another group: %ld of %ld us",
                      us(world.span(0, 49, 1)), us(whole));
    }
}

// More data than the slow member can hold: several roots at once, or a socket buffer smaller than the window.
// Then much of its data is repaired, but the others still receive multicasts, and the total time follows the
// slow member's own speed.
Test(pacing, what_overflows_is_repaired_for_the_slow_one_only) {
    for (engine::Repair repair : {engine::Repair::pull, engine::Repair::sync})
        for (std::uint32_t roots : {1U, 3U}) {
            Options options = slow_options(repair, 1);
            const std::vector<Step> script = {broadcast(0, kLarge), broadcast(1 % roots, kLarge),
                                              broadcast(2 % roots, kLarge)};
            const Ran ample(options, script);
            options.model.socket_buffer = kWindow / 2;
            const Ran scarce(options, script);
            for (std::uint32_t member = 1; member < kMembers; ++member)
                if (member != kSlow) cr_assert_leq(repaired_share(scarce, member), 0.1, "member %u", member);
            cr_assert_leq(scarce.now().value, 2 * ample.now().value);
        }
}

// A root's large broadcasts share one window. Many of them, each with too few fragments under way to trigger
// its receivers' reports, must not fill the window for good.
Test(pacing, many_large_broadcasts_of_one_root) {
    for (std::uint32_t members : {2U, 3U, 12U})
        for (engine::Repair repair : policies())
            for (std::uint64_t seed : seeds(1, 4)) {
                Options options = options_of(members, repair, seed);
                options.group().window = 128;
                options.group().fragment_bytes = 512;
                options.group().retransmit_bytes = 512;
                options.in_flight = 40;
                options.faults.duplicate = 0.1;
                std::vector<Step> script;
                for (std::uint64_t i = 0; i < 60; ++i)
                    script.push_back(broadcast(1, 2000 + (i * 7919 + seed * 104729) % 60000));
                expect_success(options, script);
            }
}
