// Groups that reduce, with all kinds of network faults. The simulator knows every result to the bit:
// operators that are neither commutative nor associative reveal any order except the tree's.
#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(reduction, .timeout = 600);

// Returns reductions of sizes on both sides of every limit: inside the gather, one piece, retransmit buffer,
// window.
static std::vector<Step> all_sizes() {
    std::vector<Step> script;
    for (std::uint64_t bytes : {0U, 12U, 1020U, 1032U, 1428U, 8184U, 8196U, 60'000U, 400'008U})
        for (Combination combination : {Combination::sum, Combination::mix, Combination::wide}) {
            const std::uint64_t whole = bytes / 12 * 12;
            script.push_back(allreduce(whole, combination));
            script.push_back(sim::reduce(whole, combination));
            script.back().in_place = bytes % 8 == 0;
            if (combination == Combination::mix) script.push_back(barrier());
        }
    return script;
}

Test(reduction, every_size_and_policy) {
    for (engine::Repair repair : policies())
        for (std::uint32_t members : {1U, 2U, 3U, 6U, 23U})
            for (double loss : {0.0, 0.05, 1.0}) {
                Options options = options_of(members, repair, members);
                options.faults.loss = loss;
                options.faults.messages_overtake = loss > 0;
                options.faults.jitter = Nanoseconds::from_us(loss > 0 ? 60 : 0);
                options.in_flight = 1 + members % 7;
                const Ran world(options, all_sizes());
                const engine::Counters total = world.total();
                cr_assert_eq(total.contributions_sent > 0, members > 1);
                cr_assert_eq(total.contributions_sent, total.contributions_received);
            }
}

Test(reduction, held_streamed_and_in_place) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 6)) {
            Options options = options_of(2 + static_cast<std::uint32_t>(seed * 5 % 17), repair, seed);
            options.group().tree_arity = 1 + static_cast<std::uint32_t>(seed % 5);
            options.faults.loss = seed % 2 == 0 ? 0.1 : 0;
            options.faults.messages_overtake = seed % 3 == 0;
            options.in_flight = 5;
            std::vector<Step> script = all_sizes();
            for (std::size_t i = 0; i < script.size(); ++i) {
                script[i].hold = engine::releases(script[i].kind) && i % 2 == seed % 2;
                script[i].streamed = engine::reduces(script[i].kind) && i % 3 == 0;
                script[i].in_place = i % 5 < 2;
            }
            expect_success(options, script);
        }
}

// A parent grants the window as credit; a small window takes many credits.
Test(reduction, small_windows) {
    for (std::uint32_t window : {16U, 64U})
        for (std::uint64_t seed : seeds(1, 3)) {
            Options options = options_of(11, engine::Repair::pull, seed);
            options.group().window = window;
            options.group().tree_arity = 3;
            options.model.ns_per_byte = 0.8;
            options.faults.messages_overtake = true;
            options.faults.jitter = Nanoseconds::from_us(100);
            expect_success(options,
                           {allreduce(600'000), sim::reduce(300'000), allreduce(100'000), barrier()});
        }
}

// A member that only reduces runs ahead; the other members store its gathers in their slots.
Test(reduction, members_that_run_ahead) {
    for (std::uint64_t seed : seeds(1, 4)) {
        Options options = options_of(9, engine::Repair::pull, seed);
        options.in_flight = 200;
        options.think = Nanoseconds::from_us(seed % 2 == 0 ? 200 : 0);
        std::vector<Step> script;
        for (std::uint32_t i = 0; i < 600; ++i)
            script.push_back(i % 7 == 6 ? allreduce(64, Combination::mix) : sim::reduce(4 * (i % 250)));
        expect_success(options, script);
    }
}

// The gather of a short allreduce uses the barrier's messages.
Test(reduction, a_short_allreduce_takes_as_long_as_a_barrier) {
    Options options = options_of(21, engine::Repair::pull, 1);
    options.separated = true;
    const Ran world(options, {barrier(), barrier(), allreduce(8), allreduce(1000)});
    const Nanoseconds barrier_time = world.duration(1);
    cr_assert_eq(world.duration(2).value, barrier_time.value);
    cr_assert_eq(world.duration(3).value, barrier_time.value);
}

// Two levels of the tree and the multicast work at the same time, so the duration is much less than the sum.
Test(reduction, long_vectors_are_pipelined) {
    Options options = options_of(21, engine::Repair::pull, 1);
    options.separated = true;
    options.model = {};
    const std::uint64_t bytes = 8'000'000;
    const Ran world(options, {broadcast(0, bytes), allreduce(bytes, Combination::sum)});
    // A parent's adapter receives four children's vectors.
    cr_assert_lt(world.duration(1).value, 6 * world.duration(0).value);
}

Test(reduction, a_member_that_dies) {
    for (std::uint32_t dead : {0U, 1U, 4U})
        for (std::uint64_t bytes : {8U, 300'000U})
            for (std::uint64_t seed : seeds(1, 3)) {
                Options options = options_of(7, engine::Repair::pull, seed);
                options.think = Nanoseconds::from_us(100);
                options.stream_pace = Nanoseconds::from_ms(5);
                options.deaths = {{.host = dead, .after = 3 + seed}};
                std::vector<Step> script(12, allreduce(bytes));
                for (std::size_t i = 0; i < script.size(); ++i) {
                    script[i].hold = i % 3 == 1;
                    script[i].streamed = i % 3 == 2;
                }
                script.insert(script.begin() + 5, sim::reduce(bytes));
                expect_success(options, script);
            }
}
