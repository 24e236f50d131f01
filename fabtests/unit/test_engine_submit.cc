// The interface to the application: operations that submit refuses, how operations end, and the effect of a
// lost peer.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

TestSuite(submit, .timeout = 300);

Test(submit, bad_arguments) {
    Bench bench(config_of(0, 3));
    bench.join();
    ByteString buffer(10);
    cr_assert_eq(bench.broadcast(3, buffer).error().code, EINVAL);
    const Collective endless{CollectiveKind::broadcast, rank_of(1), buffer.data(), UINT64_MAX};
    cr_assert_eq(bench.engine.submit(endless, bench.now).error().code, EMSGSIZE);
    cr_assert_eq(bench.engine.counters().operations_submitted, 0U);
    cr_assert(bench.drain().empty());
}

Test(submit, a_full_queue_says_try_again) {
    auto config = config_of(1, 3);
    config.pending_operations = 4;
    Bench bench(config);  // not joined: no operation can begin
    bench.engine.start(bench.now);
    ByteString buffer(10);
    for (int i = 0; i < 4; ++i) cr_assert(bench.broadcast(1, buffer).ok());
    cr_assert_eq(bench.broadcast(1, buffer).error().code, EAGAIN);
    cr_assert_eq(bench.engine.counters().operations_submitted, 4U);
    bench.message(bench.map_message({.works = true, .deaf = {}, .mute = {}}));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 4U, "what was queued begins with the join");
    cr_assert(bench.broadcast(1, buffer).ok());
}

Test(submit, unread_completions_are_bounded) {
    Bench bench(config_of(0, 1));
    bench.join();
    ByteString buffer(10);
    std::size_t accepted = 0;
    while (bench.broadcast(0, buffer).ok()) cr_assert_lt(++accepted, 100000U);
    cr_assert_eq(bench.broadcast(0, buffer).error().code, EAGAIN);
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), accepted);
    for (std::size_t i = 0; i < out.size(); ++i) cr_assert_eq(out[i].operation, i, "in order");
    cr_assert(bench.broadcast(0, buffer).ok());
}

Test(submit, after_close) {
    Bench bench(config_of(0, 2));
    bench.join();
    bench.engine.close(bench.now);
    ByteString buffer(10);
    cr_assert_eq(bench.broadcast(0, buffer).error().code, ESHUTDOWN);
    cr_assert(bench.engine.phase() == engine::Phase::active, "the other has not closed");
    bench.message({.kind = Kind::leave_up, .sender = 1, .payload = {}, .key = {}, .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::leave_down), 1U);
    cr_assert_eq(count(out, Effect::Kind::left), 1U);
    cr_assert(bench.engine.phase() == engine::Phase::left);
    cr_assert(bench.engine.next_deadline() == kNever);
}

Test(submit, closing_waits_for_what_is_open) {
    Bench bench(config_of(1, 2));
    bench.join();
    ByteString buffer(10);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.engine.close(bench.now);
    cr_assert_eq(count(bench.drain(), Kind::leave_up), 0U);
    bench.datagram(bench.fragment(0, 0, 0, content(10)));
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(count(out, Kind::leave_up), 1U);
}

Test(submit, closing_before_the_join_is_over_fails_the_group) {
    Bench bench(config_of(1, 3));
    bench.engine.start(bench.now);
    ByteString buffer(10);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.engine.close(bench.now);
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::fail), 2U);
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(out.front().status, ECANCELED);
}

Test(submit, a_lost_peer_ends_everything) {
    Bench bench(config_of(1, 4));
    bench.join();
    ByteString small(10), large(100000);
    cr_assert(bench.broadcast(0, small).ok());
    cr_assert(bench.broadcast(1, large).ok());
    cr_assert(bench.barrier().ok());
    bench.drain();
    bench.engine.on_peer_lost(rank_of(2), ECONNRESET, bench.now);
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 3U);
    for (const Out& o : out) {
        if (o.kind == Effect::Kind::complete) cr_assert_eq(o.status, ECONNRESET);
        if (o.kind == Effect::Kind::failed) cr_assert(o.to == rank_of(2));
        if (o.kind == Effect::Kind::message)
            cr_assert(o.header.kind == Kind::fail && o.to != rank_of(2) &&
                      index_of(o.header.fragment) == 2U && o.header.total == ECONNRESET);
    }
    cr_assert_eq(count(out, Kind::fail), 2U);
    cr_assert_eq(bench.broadcast(0, small).error().code, ECONNRESET);
    cr_assert(bench.engine.next_deadline() == kNever);
    cr_assert(bench.engine.failure_sent());
    bench.engine.on_peer_lost(rank_of(3), EIO, bench.now);  // a second one changes nothing
    bench.datagram(bench.fragment(0, 0, 0, content(10)));
    cr_assert(bench.drain().empty());
}

Test(submit, a_received_failure_is_not_forwarded) {
    Bench bench(config_of(1, 4));
    bench.join();
    ByteString small(10);
    cr_assert(bench.broadcast(0, small).ok());
    bench.message({.kind = Kind::fail,
                   .sender = 3,
                   .fragment = 2,
                   .total = ETIMEDOUT,
                   .payload = {},
                   .key = {},
                   .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Effect::Kind::message), 0U);
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(out.front().status, ETIMEDOUT);
}

Test(submit, an_awaited_member_is_watched) {
    Bench bench(config_of(3, 5));
    bench.join();
    ByteString small(10);
    cr_assert(bench.broadcast(0, small).ok());
    auto out = bench.pass(bench.engine.config().watch_delay);
    for (const Out& o : bench.pass(bench.engine.config().watch_delay)) out.push_back(o);
    std::vector<bool> watched(5);
    for (const Out& o : out)
        if (o.kind == Effect::Kind::watch) {
            cr_assert(!watched[index_of(o.to)], "once is enough");
            watched[index_of(o.to)] = true;
        }
    cr_assert(watched[0] && watched[2], "the root and the ring predecessor");
    cr_assert(!watched[1] && !watched[3] && !watched[4]);
}

Test(submit, an_idle_group_needs_no_timer) {
    Bench bench(config_of(1, 3));
    bench.join();
    bench.pass(Nanoseconds::from_ms(500));
    cr_assert(bench.engine.next_deadline() == kNever);
}
