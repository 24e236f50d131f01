// Members with long delays, and messages that are duplicates or come from the wrong member.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr Nanoseconds kStall = Nanoseconds::from_ms(2000);

engine::GroupConfig long_timeout_config(std::uint32_t self, std::uint32_t members) {
    auto config = config_of(self, members);
    config.stall_timeout = kStall;
    return config;
}

Packet message_of(Kind kind, std::uint32_t sender, std::uint64_t operation = 0) {
    return {.kind = kind, .sender = sender, .operation = operation, .payload = {}, .key = {}, .epoch = {}};
}

// Returns the failure and checks that each other member is informed.
Out expect_failure(const std::vector<Out>& all, std::uint32_t others) {
    cr_assert_eq(count(all, Effect::Kind::failed), 1U);
    cr_assert_eq(count(all, Kind::fail), others);
    for (const Out& out : all)
        if (out.kind == Effect::Kind::failed) return out;
    return {};
}

}  // namespace

TestSuite(failure, .timeout = 300);

Test(failure, a_barrier_names_the_child_that_has_not_entered) {
    Bench bench(long_timeout_config(0, 4));
    bench.join();
    cr_assert(bench.barrier().ok());
    for (std::uint32_t child : {1U, 3U}) bench.message(message_of(Kind::gather, child));
    cr_assert_eq(count(bench.pass(kStall - Nanoseconds::from_ms(1)), Effect::Kind::failed), 0U);
    const auto out = bench.pass(Nanoseconds::from_ms(200));
    const Out failed = expect_failure(out, 3);  // the late member lives, so it is informed, too
    cr_assert_eq(failed.status, ETIMEDOUT);
    cr_assert_eq(index_of(failed.to), 2U);
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
}

// A join ends with a barrier over all levels, which may take longer than the stall timeout of operations.
Test(failure, what_stands_still_before_stalls_count_is_forgiven) {
    Bench bench(long_timeout_config(0, 4));
    bench.join();
    bench.engine.count_stalls_from(kNever);
    cr_assert(bench.barrier().ok());
    cr_assert_eq(count(bench.pass(kStall + kStall), Effect::Kind::failed), 0U);
    bench.engine.count_stalls_from(bench.now);
    cr_assert_eq(count(bench.pass(kStall - Nanoseconds::from_ms(1)), Effect::Kind::failed), 0U);
    cr_assert_eq(count(bench.pass(Nanoseconds::from_ms(200)), Effect::Kind::failed), 1U);
}

Test(failure, a_broadcast_names_its_root) {
    Bench bench(long_timeout_config(1, 4));
    bench.join();
    ByteString buffer(100);
    cr_assert(bench.broadcast(3, buffer).ok());
    const Out failed = expect_failure(bench.pass(kStall + Nanoseconds::from_ms(200)), 3);
    cr_assert_eq(failed.status, ETIMEDOUT);
    cr_assert_eq(index_of(failed.to), 3U);
}

// A receiver of a large broadcast stops sending reports (acknowledgements of fragments).
Test(failure, a_root_names_the_member_that_does_not_report) {
    auto config = long_timeout_config(0, 3);
    config.late_copies = 0;  // with a copy the root would complete without that member
    Bench bench(config);
    bench.join();
    ByteString buffer(50'000);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.drain();
    Packet report = message_of(Kind::report, 1);
    report.fragment = 36;
    report.total = 50'000;
    bench.message(report);
    Packet done = message_of(Kind::done, 1);
    done.total = 50'000;
    bench.message(done);
    const Out failed = expect_failure(bench.pass(kStall + Nanoseconds::from_ms(200)), 2);
    cr_assert_eq(index_of(failed.to), 2U);
}

Test(failure, a_member_that_makes_progress_may_be_slow) {
    Bench bench(long_timeout_config(1, 3));
    bench.join();
    ByteString buffer(20'000);
    cr_assert(bench.broadcast(0, buffer).ok());
    const ByteString sent = content(20'000);
    for (std::uint32_t index = 0; index < bench.engine.config().fragments(sent.size()); ++index) {
        cr_assert_eq(count(bench.pass(kStall - Nanoseconds::from_ms(200)), Effect::Kind::failed), 0U);
        bench.datagram(bench.fragment(0, 0, index, sent));
    }
    bench.message(message_of(Kind::done, 2));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

Test(failure, without_a_timeout_one_may_wait_for_hours) {
    Bench bench(config_of(1, 3));
    bench.join();
    cr_assert(bench.barrier().ok());
    cr_assert_eq(count(bench.pass(Nanoseconds::from_ms(3'600'000)), Effect::Kind::failed), 0U);
}

Test(failure, an_idle_group_does_not_stall) {
    Bench bench(long_timeout_config(0, 3));
    bench.join();
    cr_assert_eq(count(bench.pass(Nanoseconds{10 * kStall.value}), Effect::Kind::failed), 0U);
    // Time that passed while the group was idle does not count towards a later stall.
    ByteString buffer(8);
    for (std::uint64_t i = 0; i < 65; ++i) cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.pass(kStall - Nanoseconds::from_ms(1)), Effect::Kind::failed), 0U);
    // The operation without a slot waits for the other members' watermarks.
    const Out failed = expect_failure(bench.pass(Nanoseconds::from_ms(300)), 2);
    cr_assert_eq(failed.status, ETIMEDOUT);
}

Test(failure, a_child_enters_a_barrier_once) {
    Bench bench(config_of(0, 3));
    bench.join();
    cr_assert(bench.barrier().ok());
    for (int i = 0; i < 4; ++i) bench.message(message_of(Kind::gather, 1));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 0U, "rank 2 has not entered");
    bench.message(message_of(Kind::gather, 2));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

// The lost member may be outside the engine, for example a process that does not lead its host.
Test(failure, the_name_of_a_lost_member_of_the_group_travels) {
    constexpr Rank kLost{77};
    Bench reporter(config_of(0, 4)), informed(config_of(1, 4));
    Packet failure = message_of(Kind::fail, 0);
    reporter.join();
    cr_assert(reporter.engine.named_loss() == kNoRank);
    reporter.engine.name_loss(kLost);
    reporter.engine.name_loss(Rank{78});
    reporter.engine.on_peer_lost(rank_of(2), ECONNRESET, reporter.now);
    for (const Out& one : reporter.drain())
        if (one.header.kind == Kind::fail) failure.total = one.header.total;
    informed.join();
    cr_assert(informed.barrier().ok());
    failure.fragment = index_of(kNoRank);
    informed.message(failure);
    cr_assert_eq(expect_failure(informed.drain(), 0).status, ECONNRESET);
    cr_assert(informed.engine.named_loss() == kLost, "the first name counts");
}

// A process without free descriptors cannot reach some member, so it cannot inform that member of the
// failure. Every other member informs it, because the unreachable member may wait. A dead member is not
// informed.
Test(failure, a_member_that_was_out_of_reach_is_informed) {
    for (const bool dead : {false, true}) {
        const int error = dead ? ECONNRESET : EMFILE;
        Bench reporter(config_of(0, 4));
        reporter.join();
        cr_assert(reporter.barrier().ok());
        reporter.engine.on_peer_lost(rank_of(2), error, reporter.now);
        (void)expect_failure(reporter.drain(), dead ? 2 : 3);

        Bench informed(config_of(1, 4));
        informed.join();
        cr_assert(informed.barrier().ok());
        Packet failure = message_of(Kind::fail, 0);
        failure.fragment = 2;
        failure.total = static_cast<std::uint64_t>(error);
        informed.message(failure);
        const auto out = informed.drain();
        cr_assert_eq(expect_failure(out, dead ? 0 : 1).status, error);
        for (const Out& one : out)
            if (one.header.kind == Kind::fail) cr_assert_eq(index_of(one.to), 2U);
        cr_assert(informed.engine.failure_sent());
        informed.message(failure);
        cr_assert(informed.drain().empty(), "once");
    }
}

Test(failure, a_message_that_names_no_member_names_no_loss) {
    for (const std::uint32_t named : {3U, 4U, 5U, UINT32_MAX - 1, UINT32_MAX}) {
        Bench informed(config_of(1, 4));
        informed.join();
        cr_assert(informed.barrier().ok());
        Packet failure = message_of(Kind::fail, 0);
        failure.fragment = named;
        failure.total = EIO;
        informed.message(failure);
        const auto out = informed.drain();
        for (const Out& one : out)
            if (one.kind == Effect::Kind::failed) cr_assert_eq(one.to, named == 3 ? rank_of(3) : kNoRank);
        cr_assert_eq(count(out, Effect::Kind::failed), 1U);
    }
}

Test(failure, only_children_gather_and_only_the_parent_informs) {
    Bench bench(config_of(1, 9));  // its parent is rank 0, its children are ranks 5 to 8
    bench.join();
    const Packet refused[] = {
        message_of(Kind::gather, 2),          message_of(Kind::gather, 0),
        message_of(Kind::watermark_up, 2, 0), message_of(Kind::watermark_down, 5),
        message_of(Kind::go, 5, 1),           message_of(Kind::reachability_map, 5),
        message_of(Kind::leave_up, 2),        message_of(Kind::vote, 2),
        message_of(Kind::ready, 2),
    };
    for (const Packet& packet : refused) {
        const engine::Counters before = bench.engine.counters();
        bench.message(packet);
        cr_assert(bench.drain().empty());
        const std::string names = changed(before, bench.engine.counters());
        cr_assert(names == "messages_received unexpected_kind", "kind %d: %s", static_cast<int>(packet.kind),
                  names.c_str());
    }
}
