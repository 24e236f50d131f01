// Conditions for which a root waits before its multicast, and the limit of this wait.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;
using engine::RootSync;

namespace {

engine::GroupConfig config_with(RootSync sync, std::uint32_t self, std::uint32_t members) {
    engine::GroupConfig config = config_of(self, members);
    config.root_sync = sync;
    config.root_delay = Nanoseconds::from_us(300);
    return config;
}

Packet entered(std::uint32_t sender, std::uint64_t operation) {
    return {.kind = Kind::entered,
            .sender = sender,
            .operation = operation,
            .payload = {},
            .key = {},
            .epoch = {}};
}

}  // namespace

TestSuite(root_sync, .timeout = 300);

Test(root_sync, a_fixed_delay_holds_the_multicast_but_not_the_completion) {
    Bench bench(config_with(RootSync::delay, 0, 4));
    bench.join();
    ByteString buffer = content(3000);
    cr_assert(bench.broadcast(0, buffer).ok());
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 1U, "a small message is copied");
    cr_assert_eq(count(out, Kind::fragment), 0U);
    cr_assert_eq(count(bench.pass(Nanoseconds::from_us(299)), Kind::fragment), 0U);
    cr_assert_eq(count(bench.pass(Nanoseconds::from_us(1)), Kind::fragment), 3U);
}

Test(root_sync, operations_keep_their_order_on_the_wire) {
    Bench bench(config_with(RootSync::delay, 0, 4));
    bench.join();
    std::vector<ByteString> buffers(20, content(10));
    for (ByteString& buffer : buffers) {
        cr_assert(bench.broadcast(0, buffer).ok());
        bench.now = bench.now + Nanoseconds::from_us(1);
    }
    std::uint64_t next = 0;
    for (const Out& out : bench.pass(Nanoseconds::from_ms(1)))
        if (out.kind == Effect::Kind::multicast) cr_assert_eq(number_of(out.header.operation), next++);
    cr_assert_eq(next, buffers.size());
}

Test(root_sync, barriers_are_not_held) {
    Bench bench(config_with(RootSync::delay, 0, 2));
    bench.join();
    cr_assert(bench.barrier().ok());
    bench.message({.kind = Kind::gather, .sender = 1, .payload = {}, .key = {}, .epoch = {}});
    cr_assert_eq(count(bench.drain(), Kind::release), 1U);
}

Test(root_sync, a_root_waits_for_the_one_that_was_drawn) {
    const auto config = config_with(RootSync::random, 0, 8);
    Bench bench(config);
    bench.join();
    const engine::RootSynchronizer draws(config);
    for (std::uint64_t id = 0; id < 16; ++id) {
        const auto drawn = index_of(draws.drawn(id, rank_of(0)));
        cr_assert(drawn > 0 && drawn < 8);
        ByteString buffer = content(10);
        const bool early = id % 2 == 0;
        if (early) bench.message(entered(drawn, id));
        cr_assert(bench.broadcast(0, buffer).ok());
        if (!early) {
            cr_assert_eq(count(bench.drain(), Kind::fragment), 0U);
            bench.message(entered(drawn % 7 + 1, id));  // not the member that the root waits for
            cr_assert_eq(count(bench.drain(), Kind::fragment), 0U);
            bench.message(entered(drawn, id));
            bench.message(entered(drawn, id));
        }
        cr_assert_eq(count(bench.drain(), Kind::fragment), 1U);
    }
    cr_assert_eq(bench.engine.counters().bad_sender, 8U);
}

Test(root_sync, a_root_goes_ahead_after_a_few_round_trips) {
    Bench bench(config_with(RootSync::random, 0, 8));
    bench.join();
    ByteString buffer = content(10);
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.drain(), Kind::fragment), 0U);
    cr_assert_eq(count(bench.pass(Nanoseconds{5 * bench.engine.round_trip().value}), Kind::fragment), 1U);
}

Test(root_sync, all_members_draw_the_same_and_every_member_is_drawn) {
    const auto config = config_with(RootSync::random, 0, 9);
    auto other = config;
    other.self = rank_of(4);
    const engine::RootSynchronizer one(config), two(other);
    std::vector<int> drawn(9);
    for (std::uint64_t id = 0; id < 900; ++id) {
        cr_assert(one.drawn(id, rank_of(3)) == two.drawn(id, rank_of(3)));
        ++drawn[index_of(one.drawn(id, rank_of(3)))];
    }
    for (std::uint32_t r = 0; r < 9; ++r) cr_assert(r == 3 ? drawn[r] == 0 : drawn[r] > 60, "%d", drawn[r]);
}

Test(root_sync, the_drawn_member_reports_unless_it_has_received) {
    const auto config = config_with(RootSync::random, 2, 3);
    Bench bench(config);
    bench.join();
    const engine::RootSynchronizer draws(config);
    std::size_t reports = 0, expected = 0;
    for (std::uint64_t id = 0; id < 40; ++id) {
        ByteString buffer(10);
        const bool received = id % 4 == 0;
        if (received) bench.datagram(bench.fragment(0, id, 0, content(10)));
        expected += !received && draws.drawn(id, rank_of(0)) == rank_of(2);
        cr_assert(bench.broadcast(0, buffer).ok());
        reports += count(bench.drain(), Kind::entered);
        if (!received) bench.datagram(bench.fragment(0, id, 0, content(10)));
        bench.drain();
    }
    cr_assert_eq(reports, expected);
    cr_assert_gt(reports, 5U);
}

Test(root_sync, adaptive_climbs_with_losses_and_gives_up_useless_steps) {
    engine::RootSynchronizer sync(config_with(RootSync::adaptive, 0, 8));
    auto run = [&](int operations, int degraded_of_ten) {
        for (int i = 0; i < operations; ++i) sync.note_operation(i % 10 < degraded_of_ten);
    };
    run(500, 0);
    cr_assert(sync.state().present == RootSync::none);
    const Nanoseconds rtt = Nanoseconds::from_us(40);
    cr_assert_eq(sync.longest_wait(rtt).value, 0);
    while (sync.state().present == RootSync::none) run(1, 8);
    cr_assert(sync.state().present == RootSync::delay);
    cr_assert(sync.longest_wait(rtt) > Nanoseconds{} && sync.longest_wait(rtt) <= Nanoseconds{4 * rtt.value});
    run(60, 8);
    cr_assert(sync.state().present == RootSync::delay, "not judged yet");
    run(10, 8);
    cr_assert(sync.state().present == RootSync::random);
    run(70, 8);
    cr_assert(sync.state().present == RootSync::none, "nothing helps");
    run(500, 8);
    cr_assert(sync.state().present == RootSync::none, "it is not tried again soon");
    int more = 0;
    while (sync.state().present == RootSync::none && more < 1000) sync.note_operation(++more % 2 == 0);
    cr_assert_lt(more, 1000);
}

Test(root_sync, adaptive_keeps_what_helps_then_tries_less) {
    engine::RootSynchronizer sync(config_with(RootSync::adaptive, 0, 8));
    while (sync.state().present == RootSync::none) sync.note_operation(true);
    for (int i = 0; i < 500; ++i) sync.note_operation(false);
    cr_assert(sync.state().present == RootSync::delay);
    for (int i = 0; i < 1000; ++i) sync.note_operation(false);
    cr_assert(sync.state().present == RootSync::none);
}
