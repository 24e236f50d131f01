// Whole groups of engines in virtual time: every size of group, every repair policy, all kinds of network
// faults. A failure prints its seed; MCC_SEED=... runs only that seed.
#include <algorithm>

#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(simulator, .timeout = 600);

static void weather(engine::Repair repair, std::uint32_t members) {
    for (double loss : {0.0, 0.01, 0.05, 0.2, 1.0})
        for (std::uint64_t seed : seeds(1, members > 16 ? 1 : 4)) {
            Options options = options_of(members, repair, seed);
            options.faults.loss = loss;
            options.faults.jitter = Nanoseconds::from_us(static_cast<std::int64_t>(seed % 4) * 15);
            options.faults.duplicate = seed % 2 == 0 ? 0.05 : 0;
            options.faults.corrupt = seed % 3 == 0 ? 0.02 : 0;
            options.faults.messages_overtake = seed % 2 == 0;
            options.think = Nanoseconds::from_us(static_cast<std::int64_t>(seed % 3) * 100);
            options.in_flight = 1 + static_cast<std::uint32_t>(seed * 3 % 8);
            const bool big = members > 16;
            const Ran world(options, mixed_script(seed, members, big ? 30 : 100, big ? 40000 : 200000));
            const engine::Counters total = world.total();
            if (options.faults.corrupt == 0) cr_assert_eq(total.bad_checksum + total.bad_packet, 0U);
            if (options.faults.corrupt > 0 && loss < 1 && members > 2)
                cr_assert(total.bad_checksum > 0, "nothing was damaged (%s)", replay(options).c_str());
            if (loss == 0 && members > 1)
                cr_assert(total.fragments_by_multicast > 0, "nothing came by multicast (%s)",
                          replay(options).c_str());
            if (loss == 1) cr_assert_eq(total.fragments_by_multicast, 0U);
        }
}

Test(simulator, pull_small_groups) {
    for (std::uint32_t members : {1U, 2U, 3U, 5U, 8U, 16U}) weather(engine::Repair::pull, members);
}
Test(simulator, push_small_groups) {
    for (std::uint32_t members : {1U, 2U, 3U, 5U, 8U, 16U}) weather(engine::Repair::push, members);
}
Test(simulator, sync_small_groups) {
    for (std::uint32_t members : {1U, 2U, 3U, 5U, 8U, 16U}) weather(engine::Repair::sync, members);
}
Test(simulator, automatic_small_groups) {
    for (std::uint32_t members : {1U, 2U, 3U, 5U, 8U, 16U}) weather(engine::Repair::automatic, members);
}
Test(simulator, sync_33_members) {
    weather(engine::Repair::sync, 33);
}
Test(simulator, automatic_33_members) {
    weather(engine::Repair::automatic, 33);
}
Test(simulator, pull_33_members) {
    weather(engine::Repair::pull, 33);
}
Test(simulator, push_33_members) {
    weather(engine::Repair::push, 33);
}

Test(simulator, largest_group) {
    for (engine::Repair repair : policies())
        for (double loss : {0.0, 0.05, 1.0})
            for (std::uint64_t seed : seeds(1, 1)) {
                Options options = options_of(256, repair, seed);
                options.faults.loss = loss;
                expect_success(options, {broadcast(0, 8), barrier(), broadcast(255, 30000), broadcast(100, 0),
                                         barrier(), broadcast(7, 4000)});
            }
}

Test(simulator, every_root_and_the_sizes_at_the_edges) {
    for (engine::Repair repair : policies())
        for (double loss : {0.0, 0.1})
            for (std::uint64_t seed : seeds(1, 2)) {
                Options options = options_of(6, repair, seed);
                options.faults.loss = loss;
                const std::uint64_t fragment = options.group().fragment_bytes,
                                    retained = options.group().retransmit_bytes;
                std::vector<Step> script;
                for (std::uint32_t root = 0; root < 6; ++root)
                    for (std::uint64_t bytes :
                         {std::uint64_t{0}, std::uint64_t{1}, fragment - 1, fragment, fragment + 1, retained,
                          retained + 1, 300 * fragment, 300 * fragment + 1})
                        script.push_back(broadcast(root, bytes));
                expect_success(options, script);
            }
}

// The smallest and largest fragments and windows that a join may agree on.
Test(simulator, smallest_and_largest_fragments_and_windows) {
    const struct {
        std::uint32_t fragment, window;
    } cases[] = {{512, 16}, {512, 512}, {8192, 16}, {8192, 512}};
    for (engine::Repair repair : policies())
        for (const auto& c : cases)
            for (std::uint64_t seed : seeds(1, 3)) {
                Options options = options_of(5, repair, seed);
                options.group().fragment_bytes = c.fragment;
                options.group().window = c.window;
                options.faults.loss = seed % 2 == 0 ? 0 : 0.1;
                options.faults.jitter = Nanoseconds::from_us(20);
                options.faults.messages_overtake = true;
                expect_success(options, mixed_script(seed, 5, 40, 100000));
            }
}

Test(simulator, same_seed_same_world) {
    for (engine::Repair repair : policies()) {
        auto digest = [&](std::uint64_t seed) {
            Options options = options_of(7, repair, seed);
            options.faults.loss = 0.1;
            options.faults.jitter = Nanoseconds::from_us(30);
            options.faults.messages_overtake = true;
            options.think = Nanoseconds::from_us(50);
            const Ran world(options, mixed_script(3, 7, 60, 60000));
            return world.network().digest();
        };
        cr_assert_eq(digest(1), digest(1));
        cr_assert_neq(digest(1), digest(2), "the digest does not see the difference");
    }
}

Test(simulator, members_without_a_socket) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 12)) {
            const std::uint32_t members = 2 + static_cast<std::uint32_t>(seed % 8);
            Options options = options_of(members, repair, seed);
            options.setups[0].no_socket.assign(members, false);
            options.setups[0].no_socket[seed % members] = true;
            options.setups[0].no_socket[seed * 5 % members] = true;
            options.faults.loss = seed % 3 == 0 ? 0.1 : 0;
            options.faults.messages_overtake = seed % 2 == 0;
            const Ran world(options, mixed_script(seed, members, 80, 100000));
            for (std::uint32_t r = 0; r < members; ++r)
                if (options.setups[0].no_socket[r])
                    cr_assert(world.engine(0).graph().deaf(rank_of(r)), "%s", replay(options).c_str());
        }
}

// Regression test: a NAK overtaken by a newer NAK must not be taken for the newer one, or fragments named
// only in the older one are never sent.
Test(simulator, naks_that_overtake_each_other) {
    Options options = options_of(7, engine::Repair::pull, 5);
    options.faults.loss = 0.07;
    options.faults.jitter = Nanoseconds::from_us(30);
    options.faults.duplicate = 0.02;
    options.faults.corrupt = 0.01;
    options.faults.messages_overtake = true;
    options.think = Nanoseconds::from_us(100);
    options.in_flight = 6;
    options.setups[0].no_socket = {false, true, false, false, false, true, false};
    for (std::uint64_t seed : seeds(1, 20)) {
        options.seed = seed;
        expect_success(options, mixed_script(seed, 7, 100, 300000));
    }
}

Test(simulator, slow_readers_with_small_buffers) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 3)) {
            Options options = options_of(5, repair, seed);
            options.model.socket_buffer = 60;
            options.model.read_every = {{}, Nanoseconds::from_us(500), {}, Nanoseconds::from_us(80), {}};
            const Ran world(options, {broadcast(0, 400000), broadcast(1, 8), barrier(), broadcast(3, 300000),
                                      broadcast(2, 9000), barrier()});
            // Flow control: datagrams beyond a socket's buffer are not sent again and again. The root's
            // window is larger than the buffer here, so losses are expected, but the datagrams sent must not
            // exceed the fragments.
            std::uint64_t fragments = 0;
            for (std::uint64_t bytes : {400000, 8, 300000, 9000})
                fragments += options.group().fragments(bytes);
            const engine::Counters total = world.total();
            cr_assert_leq(total.datagrams_sent - total.fragments_resent,
                          fragments + 2 + 5 * options.group().probes);
        }
}

Test(simulator, members_that_dawdle) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 3)) {
            Options options = options_of(6, repair, seed);
            options.think = Nanoseconds::from_ms(3);
            options.in_flight = 9;
            options.faults.loss = 0.05;
            expect_success(options, mixed_script(seed, 6, 100, 50000));
        }
}

Test(simulator, more_operations_than_slots) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 2)) {
            Options options = options_of(4, repair, seed);
            options.in_flight = 200;
            options.faults.loss = 0.1;
            std::vector<Step> script;
            for (std::uint32_t i = 0; i < 1000; ++i)
                script.push_back(i % 9 == 8 ? barrier() : broadcast(i % 4, i % 5 * 700));
            const Ran world(options, script);
            cr_assert_geq(world.engine(0).counters().checkpoints, 1000 / 64);
        }
}

// Safety phase first: network faults for a while. Then the liveness phase: the faults end, and all operations
// must complete soon.
Test(simulator, safety_then_liveness) {
    for (engine::Repair repair : policies())
        for (std::uint64_t seed : seeds(1, 10)) {
            Options options = options_of(3 + static_cast<std::uint32_t>(seed % 9), repair, seed);
            options.faults.loss = 0.5;
            options.faults.corrupt = 0.05;
            options.faults.duplicate = 0.1;
            options.faults.jitter = Nanoseconds::from_us(400);
            options.faults.messages_overtake = true;
            options.faults.spike = 0.05;
            options.faults.backpressure = 0.5;
            options.faults.heal_at = Nanoseconds::from_ms(100);
            options.time_limit = Nanoseconds::from_ms(500);
            expect_success(options, mixed_script(seed, options.group().members, 60, 60000));
        }
}

// No member relies on another's policy, so policies may differ. Members agree on the channels, which bound
// how far each may run ahead.
Test(simulator, members_with_different_policies) {
    for (double loss : {0.0, 0.05, 0.3, 1.0})
        for (std::uint64_t seed : seeds(1, 4)) {
            Options options = options_of(9, engine::Repair::pull, seed);
            options.each = [seed](engine::GroupConfig& config) {
                config.repair = policies()[(index_of(config.self) * seed + seed) % std::size(policies())];
            };
            options.faults.loss = loss;
            options.faults.messages_overtake = seed % 2 == 0;
            options.in_flight = 8;
            expect_success(options, mixed_script(seed, 9, 100, 100000));
        }
}

Test(simulator, channels) {
    for (std::uint32_t channels : {1U, 2U, 7U, 16U, 64U})
        for (double loss : {0.0, 0.1})
            for (std::uint64_t seed : seeds(1, 2)) {
                Options options = options_of(7, engine::Repair::sync, seed);
                options.group().channels = channels;
                options.faults.loss = loss;
                options.in_flight = 70;
                const Ran world(options, mixed_script(seed, 7, 150, 30000));
                cr_assert_geq(world.engine(3).counters().checkpoints, 150 / channels);
            }
}

// A member that never receives the multicast watermarks requests them.
Test(simulator, lost_watermarks) {
    for (std::uint32_t deaf_to_watermarks : {1U, 4U, 8U}) {
        Options options = options_of(9, engine::Repair::sync, 1);
        options.faults.drop = [=](const wire::Header& header, Rank to) {
            return header.kind == wire::Kind::watermark_cast && to == rank_of(deaf_to_watermarks);
        };
        const Ran world(options, mixed_script(1, 9, 100, 10000));
        cr_assert_gt(world.engine(deaf_to_watermarks).counters().watermark_requests_sent, 0U);
    }
}

Test(simulator, every_root_synchronisation) {
    for (engine::RootSync sync :
         {engine::RootSync::delay, engine::RootSync::random, engine::RootSync::adaptive})
        for (engine::Repair repair : policies())
            for (std::uint64_t seed : seeds(1, 3)) {
                Options options = options_of(6, repair, seed);
                options.group().root_sync = sync;
                options.group().root_delay = Nanoseconds::from_us(50);
                options.faults.loss = seed % 2 == 0 ? 0.1 : 0;
                options.faults.messages_overtake = true;
                options.think = Nanoseconds::from_us(40);
                options.in_flight = 6;
                const Ran world(options, mixed_script(seed, 6, 150, 60000));
                const engine::Counters total = world.total();
                if (sync != engine::RootSync::adaptive) cr_assert_gt(total.roots_held, 0U);
                if (sync != engine::RootSync::delay) cr_assert_gt(total.entered_sent, 0U);
            }
}
