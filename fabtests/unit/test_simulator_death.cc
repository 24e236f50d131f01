// A member dies: at the join, in the middle, among the last operations, in every role. The survivors must end
// in time, and operations reported as successful must be correct.
#include <cerrno>

#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

namespace {

// A world in which a member has died. A death is detected at the second check at the latest, and then all
// members are informed.
struct Bereaved : World {
    Bereaved(const Options& options, std::vector<Step> script) : World(options) {
        const std::string wrong = run(std::move(script));
        const std::string what = fmt::format("victim {} ({})", options.deaths[0].host, replay(options));
        cr_assert(wrong.empty(), "%s; %s", wrong.c_str(), what.c_str());
        if (killed_at() == kNever) return;
        const Nanoseconds took = now() - killed_at();
        cr_assert_leq(took.value, 4 * options.group().watch_delay.value, "%ld us; %s", us(took),
                      what.c_str());
    }
};

}  // namespace

TestSuite(death, .timeout = 600);

Test(death, of_each_member_at_each_stage) {
    for (engine::Repair repair : policies())
        for (std::uint32_t members : {2U, 3U, 7U})
            for (std::uint32_t victim = 0; victim < members; ++victim)
                for (std::uint64_t after : {0U, 1U, 7U, 15U, 17U, 28U, 29U, 30U})
                    for (std::uint64_t seed : seeds(1, 2)) {
                        Options options = options_of(members, repair, seed);
                        options.faults.loss = seed % 2 == 0 ? 0.1 : 0;
                        options.think = Nanoseconds::from_us(seed % 2 == 0 ? 2000 : 0);
                        options.deaths = {{.host = victim, .after = after}};
                        Bereaved(options, mixed_script(seed, members, 30, 60000));
                    }
}

Test(death, at_the_join) {
    for (std::uint32_t members : {2U, 5U})
        for (std::uint32_t victim = 0; victim < members; ++victim)
            for (std::int64_t at_us : {0, 10, 30, 50, 90, 1000, 2000, 3050, 3090, 3120, 50070, 50090}) {
                Options options = options_of(members, engine::Repair::pull, 1);
                options.deaths = {{.host = victim, .at = Nanoseconds::from_us(at_us)}};
                Bereaved(options, mixed_script(1, members, 20, 60000));
            }
}

Test(death, at_any_moment_of_a_large_broadcast) {
    std::uint32_t noticed = 0, deaths = 0;
    for (engine::Repair repair : policies())
        for (std::uint32_t victim = 0; victim < 5; ++victim)
            for (std::int64_t at_us = 3090; at_us < 3500; at_us += 17) {
                Options options = options_of(5, repair, static_cast<std::uint64_t>(at_us));
                options.faults.loss = 0.05;
                options.group().window = 64;
                options.deaths = {{.host = victim, .at = Nanoseconds::from_us(at_us)}};
                const Bereaved world(options, {broadcast(1, 400'000), broadcast(0, 8)});
                noticed += world.status((victim + 1) % 5) == ECONNRESET;
                ++deaths;
            }
    cr_assert_gt(noticed, deaths / 5, "%u of %u deaths were in time", noticed, deaths);
}

// Some members have already closed the group when a member dies that is still needed.
Test(death, while_some_have_closed) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 60)) {
            const std::uint32_t members = 3 + static_cast<std::uint32_t>(seed % 8);
            Options options = options_of(members, repair, seed);
            options.model.read_every.resize(members);
            options.model.read_every[seed * 3 % members] = Nanoseconds::from_ms(5);
            options.faults.loss = 0.1;
            const auto victim = static_cast<std::uint32_t>(seed * 7 % members);
            options.deaths = {{.host = victim, .after = 25 + seed % 6}};
            Bereaved(options, mixed_script(seed, members, 30, 60000));
        }
}

Test(death, of_a_member_served_point_to_point) {
    for (std::uint32_t victim = 0; victim < 6; ++victim)
        for (std::uint64_t seed : seeds(1, 4)) {
            Options options = options_of(6, engine::Repair::pull, seed);
            options.setups[0].no_socket = {false, true, false, true, true, false};
            options.deaths = {{.host = victim, .after = seed * 7}};
            Bereaved(options, mixed_script(seed, 6, 30, 100000));
        }
}

// All members except the root have finished a large broadcast, and the root waits for the report of a member,
// which in turn waits for the dead member: the waiting member must have the dead member monitored, even
// without an open operation.
Test(death, before_the_report) {
    for (std::uint32_t dead : {8U, 9U, 12U})
        for (std::uint64_t at = 1; at <= 20; ++at) {
            Options options = options_of(13, engine::Repair::sync, at);
            options.group().channels = 2;
            options.group().fragment_bytes = 512;
            options.group().retransmit_bytes = 512;
            options.in_flight = 2;
            std::vector<Step> script;
            for (std::uint32_t i = 0; i < 60; ++i) script.push_back(broadcast(i % 13, 14'053));
            options.deaths = {
                {.host = dead, .at = Nanoseconds::from_us(static_cast<std::int64_t>(3500 + 97 * at))}};
            expect_success(options, script);
        }
}
