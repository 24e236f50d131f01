// Groups with roots that get their bytes bit by bit. The simulator checks the bytes reported as arrived by
// every member.
#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(stream, .timeout = 600);

Test(stream, roots_that_wait_for_their_bytes) {
    for (engine::Repair repair : policies())
        for (double loss : {0.0, 0.05, 1.0})
            for (std::uint64_t seed : seeds(1, 4)) {
                const std::uint32_t members = 2 + static_cast<std::uint32_t>(seed * 3 % 8);
                Options options = options_of(members, repair, seed);
                options.faults.loss = loss;
                options.faults.messages_overtake = seed % 2 == 0;
                options.stream_pace = Nanoseconds::from_us(seed % 2 == 0 ? 20 : 3000);
                options.in_flight = 6;
                std::vector<Step> script;
                for (std::uint32_t i = 0; i < 12; ++i) {
                    script.push_back(streamed(i % members, (i % 4 == 3 ? 200'000 : 3000) + i));
                    script.push_back(i % 5 == 4 ? barrier() : broadcast((i + 1) % members, i * 900));
                }
                expect_success(options, script);
            }
}

// No member may request by message the data of a later multicast: each timeout costs a member one NAK for one
// fragment.
Test(stream, a_slow_root_raises_no_storm) {
    for (engine::Repair repair : {engine::Repair::pull, engine::Repair::sync, engine::Repair::automatic}) {
        Options options = options_of(16, repair, 1);
        options.stream_pace = Nanoseconds::from_ms(20);
        const std::uint64_t bytes = 1'000'000;
        const Ran world(options, {streamed(0, bytes), broadcast(1, 8)});
        const engine::Counters total = world.total();
        const std::uint64_t fragments = options.group().fragments(bytes);
        cr_assert_leq(total.datagrams_sent, fragments + 1 + 16 * options.group().probes);
        cr_assert_lt(total.fragments_supplied, fragments, "%zu of %zu fragments to 15 members",
                     static_cast<std::size_t>(total.fragments_supplied), static_cast<std::size_t>(fragments));
    }
}

// The multicast path fails while the root waits: the rest arrives along the ring.
Test(stream, an_outage_while_a_root_waits) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 3)) {
            Options options = options_of(6, repair, seed);
            options.faults.dead.push_back({{Nanoseconds::from_ms(15), Nanoseconds::from_ms(400)}});
            options.stream_pace = Nanoseconds::from_ms(4);
            expect_success(options, {streamed(0, 2'000'000), streamed(1, 5000), broadcast(2, 100'000)});
        }
}

Test(stream, a_root_that_dies_while_it_waits) {
    for (std::uint64_t seed : seeds(1, 6)) {
        Options options = options_of(5, engine::Repair::pull, seed);
        options.stream_pace = Nanoseconds::from_ms(30);
        options.deaths = {{.host = 1, .at = Nanoseconds::from_ms(20 + static_cast<std::int64_t>(seed))}};
        expect_success(options, {streamed(1, seed % 2 == 0 ? 5000 : 900'000), broadcast(0, 10), barrier()});
    }
}
