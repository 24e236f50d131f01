// Reductions that cannot complete: members that disagree, impossible packets, calls refused at once, and the
// member for which an operation waits.
#include <algorithm>

#include "reduce_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

TestSuite(disagreement, .timeout = 300);

Test(disagreement, members_that_disagree_end_the_group) {
    const std::uint64_t large = 10 * kPiece;
    const struct {
        const char* what;
        CollectiveKind posted;
        std::uint64_t bytes;
        Packet other;
    } rows[] = {
        {"a gather of another length", CollectiveKind::allreduce, 64, gather(5, vector_of(5, 60))},
        {"of another sort", CollectiveKind::allreduce, 64, gather(5, vector_of(5, 64), true)},
        {"a short one for a long one", CollectiveKind::allreduce, large, gather(5, vector_of(5, 64))},
        {"word of a long one", CollectiveKind::allreduce, 64, packet(Kind::gather, 5, 0, large)},
        {"a credit of another length", CollectiveKind::allreduce, large,
         packet(Kind::credit, 0, 3, large - 4)},
        {"a credit for a short one", CollectiveKind::reduce, 64,
         packet(Kind::credit, 0, 3, large | wire::kReduceFlag)},
        {"a gather for a broadcast", CollectiveKind::broadcast, 64, gather(5, vector_of(5, 64))},
        {"a gather for a barrier", CollectiveKind::barrier, 0, gather(5, vector_of(5, 64))},
    };
    for (const auto& row : rows)
        for (bool early : {false, true}) {
            Bench bench(config_of(1, 6));
            bench.join();
            ByteString buffer = vector_of(1, row.bytes);
            auto post = [&] {
                if (row.posted == CollectiveKind::broadcast)
                    cr_assert(bench.broadcast(0, buffer).ok());
                else if (row.posted == CollectiveKind::barrier)
                    cr_assert(bench.barrier().ok());
                else
                    cr_assert(bench.reduction(row.posted, buffer).ok());
            };
            if (!early) post();
            bench.message(row.other);
            if (early) post();
            int status = 0;
            for (const Out& out : bench.drain())
                if (out.kind == Effect::Kind::complete) status = out.status;
            cr_assert_eq(status, EMSGSIZE, "%s, %s", row.what, early ? "early" : "late");
        }
    // Elements of another size: the same length in different pieces.
    Bench bench(config_of(1, 6));
    bench.join();
    ByteString buffer = vector_of(1, large);
    cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
    Packet odd = pieces(5, 0, 2, vector_of(5, large), true);
    odd.payload.resize(odd.payload.size() - 8);
    bench.message(odd);
    cr_assert(bench.engine.phase() == engine::Phase::failed);
}

Test(disagreement, what_cannot_be_is_counted_and_changes_nothing) {
    const std::uint64_t bytes = 100 * kPiece;
    const ByteString vector = vector_of(5, bytes);
    Packet beyond = pieces(5, 70, 1, vector), late = pieces(5, 0, 1, vector), empty = late;
    late.operation = 3;
    empty.payload.clear();
    Packet endless = packet(Kind::gather, 5, 0, UINT64_MAX / 2), torn = gather(5, vector_of(5, 64));
    torn.operation = endless.operation = 4;
    torn.payload.pop_back();
    Packet early = packet(Kind::credit, 2, 1, bytes), much = packet(Kind::credit, 0, 101, bytes);
    const struct {
        const char* what;
        Packet packet;
        const char* counted;
    } rows[] = {
        {"pieces of no child", pieces(2, 0, 1, vector), "unexpected_kind"},
        {"pieces beyond the credit", beyond, "beyond_window"},
        {"pieces without a grant", late, "unexpected_kind"},
        {"pieces from behind the end", pieces(5, 100, 0, vector), "bad_fragment"},
        {"no piece", empty, "bad_fragment"},
        {"a credit from no parent", early, "unexpected_kind"},
        {"a credit for more than there is", much, "bad_fragment"},
        {"a gather from no child", gather(2, vector_of(2, 64)), "unexpected_kind"},
        {"a vector without end", endless, "bad_fragment"},
        {"a torn vector", torn, "bad_fragment"},
    };
    for (const auto& row : rows) {
        Bench bench(config_of(1, 6));
        bench.join();
        ByteString buffer = vector_of(1, bytes);
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
        bench.drain();
        const engine::Counters before = bench.engine.counters();
        bench.message(row.packet);
        const std::string counted = " " + changed(before, bench.engine.counters()) + " ";
        const bool right = counted.find(std::string(" ") + row.counted + " ") != std::string::npos;
        cr_assert(right && std::count(counted.begin(), counted.end(), ' ') == 3, "%s:%s", row.what,
                  counted.c_str());
        cr_assert(bench.drain().empty() && buffer == vector_of(1, bytes), "%s", row.what);
    }
}

// A reduce receives no data from the parent: such a packet must not complete the reduce.
Test(disagreement, a_fragment_for_a_reduce_is_counted) {
    for (Kind kind : {Kind::release, Kind::fragment, Kind::relay, Kind::data}) {
        auto config = config_of(1, 6);
        config.relay = true;
        config.range_of.assign(6, 0);
        Bench bench(config);
        bench.join();
        ByteString buffer = vector_of(1, 64);
        cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
        const Packet nothing = packet(kind, 0, 0, 0);
        if (kind == Kind::data)
            bench.message(nothing);
        else
            bench.datagram(nothing);
        cr_assert(bench.drain().empty());
        cr_assert_eq(bench.engine.counters().bad_fragment, 1U);
    }
}

Test(disagreement, what_cannot_be_submitted) {
    Bench bench(config_of(0, 2));
    bench.join();
    ByteString buffer(100);
    Collective good{
        .kind = CollectiveKind::allreduce, .buffer = buffer.data(), .bytes = 100, .combiner = {mix_words, 4}};
    auto refused = [&](auto spoil) {
        Collective operation = good;
        spoil(operation);
        const auto result = bench.engine.submit(operation, bench.now);
        return result.ok() ? 0 : result.error().code;
    };
    cr_assert_eq(refused([](Collective& o) { o.root = rank_of(1); }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.buffer = nullptr; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.combiner = {}; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.combiner.element_bytes = 0; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.combiner.element_bytes = 2000; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.combiner.element_bytes = 8; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.bytes = UINT64_MAX - 3; }), EMSGSIZE);
    cr_assert_eq(refused([](Collective& o) { o.kind = CollectiveKind::barrier; }), EINVAL);
    cr_assert_eq(refused([](Collective& o) { o.bytes = 0; }), 0, "a vector may be empty");
}

// If the user limits how long an operation may take, the group reports the member for which the operation
// waits.
Test(disagreement, a_stall_names_the_missing_member) {
    const struct {
        const char* what;
        std::uint64_t bytes;
        bool child_came;
        Rank lost;
    } rows[] = {{"a short vector", 64, false, rank_of(5)},
                {"a long vector", 10 * kPiece, false, rank_of(5)},
                {"a credit", 10 * kPiece, true, rank_of(0)}};
    for (const auto& row : rows) {
        auto config = config_of(1, 6);
        config.stall_timeout = Nanoseconds::from_ms(400);
        Bench bench(config);
        bench.join();
        ByteString buffer = vector_of(1, row.bytes);
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
        if (row.child_came) bench.message(pieces(5, 0, 10, vector_of(5, row.bytes)));
        bool named = false, watched = false;
        for (const Out& out : bench.pass(Nanoseconds::from_ms(600))) {
            named |= out.kind == Effect::Kind::failed && out.to == row.lost;
            watched |= out.kind == Effect::Kind::watch && out.to == row.lost;
        }
        cr_assert(named && watched, "%s", row.what);
    }
}

Test(disagreement, waiting_for_a_credit_is_reported_once) {
    Bench bench(config_of(3, 4));
    bench.join();
    ByteString buffer = vector_of(3, 10 * kPiece);
    cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
    const auto out = bench.pass(Nanoseconds::from_ms(900));
    cr_assert_eq(count(out, Kind::gather), 1U);
    cr_assert_eq(the(out, Kind::gather).header.total, 10 * kPiece | wire::kReduceFlag);
}
