// Reductions: contributions that go up the tree and the order in which they are combined, credits granted by
// a parent, and data held by rank 0.
#include <algorithm>

#include "reduce_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

TestSuite(reductions, .timeout = 300);

// Rank 0 of 4, whose children are 1 to 3; a gather may arrive before the post.
Test(reductions, short_vectors_are_combined_in_the_same_order_whenever_they_come) {
    const std::vector<std::vector<std::uint32_t>> orders = {{1, 2, 3}, {3, 2, 1}, {2, 3, 1}};
    for (const std::uint64_t bytes : {1000U, 20000U})
        for (const auto& order : orders)
            for (std::size_t posted_after = 0; posted_after <= 3; ++posted_after) {
                engine::GroupConfig config = config_of(0, 4);
                config.gather_bytes = 20000;
                config.retransmit_bytes = 32768;
                Bench bench(config);
                bench.join();
                ByteString buffer = vector_of(0, bytes);
                for (std::size_t i = 0; i < 3; ++i) {
                    if (i == posted_after) cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
                    bench.message(gather(order[i], vector_of(order[i], bytes)));
                }
                if (posted_after == 3) cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
                const auto out = bench.drain();
                cr_assert_eq(count(out, Effect::Kind::complete), 1U);
                cr_assert(buffer == mixed({0, 1, 2, 3}, bytes));
                const auto released = std::find_if(out.begin(), out.end(), [](const Out& one) {
                    return one.header.kind == Kind::release && one.kind == Effect::Kind::multicast;
                });
                cr_assert(released != out.end());
                cr_assert(std::equal(released->payload.begin(), released->payload.end(), buffer.begin()));
                cr_assert_eq(bench.engine.arrived(kFirst), bytes);
            }
}

// Vectors that arrive out of order are kept in memory shared by many operations.
Test(reductions, kept_vectors_give_their_memory_back) {
    engine::GroupConfig config = config_of(0, 3);
    Bench bench(config);
    bench.join();
    for (std::uint32_t i = 0; i < 5 * config.operation_slots; ++i) {
        const bool early = i % 3 != 0;
        ByteString buffer = vector_of(0, 1000);
        Packet second = gather(2, vector_of(2, 1000)), first = gather(1, vector_of(1, 1000));
        second.operation = first.operation = i;
        if (early) bench.message(second);
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
        if (!early) bench.message(second);
        bench.message(first);
        cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U, "operation %u", i);
        cr_assert(buffer == mixed({0, 1, 2}, 1000), "operation %u", i);
        if ((i + 1) % config.checkpoint_every != 0) continue;
        for (const std::uint32_t child : {1U, 2U}) {
            Packet watermark = packet(Kind::watermark_up, child, 0, 0);
            watermark.operation = i + 1;
            bench.message(watermark);
        }
        bench.drain();
    }
}

Test(reductions, an_inner_member_sends_what_its_subtree_comes_to) {
    for (bool reduce : {false, true}) {
        Bench bench(config_of(1, 6));  // its only child is 5
        bench.join();
        ByteString buffer = vector_of(1, 64);
        cr_assert(bench.reduction(reduce ? CollectiveKind::reduce : CollectiveKind::allreduce, buffer).ok());
        cr_assert_eq(count(bench.drain(), Kind::gather), 0U);
        bench.message(gather(5, vector_of(5, 64), reduce));
        const auto out = bench.drain();
        const Out& up = the(out, Kind::gather);
        cr_assert(up.to == rank_of(0) && up.payload == mixed({1, 5}, 64));
        cr_assert_eq(up.header.total, reduce ? 64 | wire::kReduceFlag : 64);
        cr_assert_eq(count(out, Effect::Kind::complete), reduce ? 1U : 0U,
                     "a reduce is over when it is sent");
        if (reduce) continue;
        const ByteString result = vector_of(99, 64);
        Packet release = packet(Kind::release, 0, 0, 64, result);
        bench.datagram(release);
        cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
        cr_assert(buffer == result);
    }
}

Test(reductions, a_member_without_children_sends_its_input_and_leaves_it_alone) {
    for (std::uint64_t bytes : {64U, 4000U}) {
        Bench bench(config_of(3, 4));
        bench.join();
        const ByteString input = vector_of(3, bytes);
        ByteString buffer(bytes);
        cr_assert(bench.engine
                      .submit({.kind = CollectiveKind::reduce,
                               .buffer = buffer.data(),
                               .bytes = bytes,
                               .input = input.data(),
                               .combiner = {mix_words, 4}},
                              bench.now)
                      .ok());
        if (bytes > 1024) {
            cr_assert(bench.drain().empty(), "not before it is granted");
            bench.message(packet(Kind::credit, 0, 2, bytes | wire::kReduceFlag));
            cr_assert_eq(the(bench.drain(), Kind::contribution).payload.size(), 2U * kPiece);
            bench.message(packet(Kind::credit, 0, 3, bytes | wire::kReduceFlag));
        }
        const auto out = bench.drain();
        cr_assert_eq(count(out, Effect::Kind::complete), 1U);
        cr_assert(input == vector_of(3, bytes) && buffer == ByteString(bytes));
    }
}

// 100 pieces, a window of 64: a child is granted as many as the child before it has had combined.
Test(reductions, a_parent_grants_each_child_what_it_can_combine_at_once) {
    const std::uint64_t bytes = 100 * kPiece;
    Bench bench(config_of(0, 3));
    bench.join();
    ByteString buffer = vector_of(0, bytes);
    cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
    auto out = bench.drain();
    cr_assert_eq(granted(out, 1), 64U);
    cr_assert_eq(granted(out, 2), 0U);
    const ByteString one = vector_of(1, bytes), two = vector_of(2, bytes);
    // Reordered messages: the second half arrives first.
    bench.message(pieces(1, 20, 20, one, true));
    out = bench.drain();
    cr_assert(granted(out, 1) == 0 && granted(out, 2) == 0);
    bench.message(pieces(1, 0, 20, one, true));
    out = bench.drain();
    cr_assert_eq(granted(out, 1), 100U);
    cr_assert_eq(granted(out, 2), 40U);
    cr_assert_eq(bench.engine.arrived(kFirst), 0U);
    bench.message(pieces(2, 0, 40, two, true));
    bench.drain();
    cr_assert_eq(bench.engine.arrived(kFirst), 40U * kPiece);
    bench.message(pieces(1, 40, 46, one, true));
    bench.message(pieces(1, 86, 14, one, true));
    cr_assert_eq(granted(bench.drain(), 2), 100U);
    bench.message(pieces(2, 40, 40, two, true));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 0U);
    bench.message(pieces(2, 80, 20, two, true));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
    cr_assert(buffer == mixed({0, 1, 2}, bytes));
    cr_assert_eq(bench.engine.counters().credits_sent, 4U);
}

static Out last_release(std::vector<Out> all) {
    std::reverse(all.begin(), all.end());
    return the(all, Kind::release);
}

Test(reductions, a_long_result_goes_down_as_far_as_it_is_final) {
    const std::uint64_t bytes = 100 * kPiece;
    Bench bench(config_of(0, 2));
    bench.join();
    ByteString buffer = vector_of(0, bytes);
    cr_assert(bench.reduction(CollectiveKind::allreduce, buffer).ok());
    bench.drain();
    const ByteString one = vector_of(1, bytes);
    bench.message(pieces(1, 0, 30, one));
    auto out = bench.drain();
    cr_assert_eq(count(out, Kind::release), 30U);
    const ByteString right = mixed({0, 1}, bytes);
    const Out last = last_release(out);
    cr_assert(std::equal(last.payload.begin(), last.payload.end(), right.begin() + 29 * kPiece));
    cr_assert_eq(last.header.total, bytes | wire::kPartialFlag);
    bench.message(pieces(1, 30, 40, one));
    bench.message(pieces(1, 70, 30, one));
    out = bench.drain();
    cr_assert_eq(count(out, Kind::release), 34U, "up to a window ahead of the reports");
    cr_assert_eq(last_release(out).header.total, bytes);
}

Test(reductions, what_comes_twice_is_combined_once) {
    const std::uint64_t bytes = 10 * kPiece;
    Bench bench(config_of(0, 2));
    bench.join();
    ByteString buffer = vector_of(0, bytes);
    cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
    const ByteString one = vector_of(1, bytes);
    bench.message(pieces(1, 2, 3, one, true));
    bench.message(pieces(1, 0, 7, one, true));
    cr_assert_eq(bench.engine.counters().duplicates, 3U);
    bench.message(pieces(1, 5, 5, one, true));
    bench.message(pieces(1, 5, 5, one, true));
    cr_assert_eq(bench.engine.counters().duplicates, 6U, "and what comes after the end");
    cr_assert(buffer == mixed({0, 1}, bytes));
}

Test(reductions, a_held_operation_waits_for_its_release) {
    for (std::uint64_t bytes : {0U, 100U, 4000U, 100U * kPiece}) {
        Bench bench(config_of(0, 2));
        bench.join();
        ByteString buffer = vector_of(0, bytes);
        cr_assert(bench.reduction(CollectiveKind::allreduce, buffer, true).ok());
        bench.drain();
        cr_assert_not(bench.engine.release(kFirst, bench.now), "nothing is gathered");
        const ByteString one = vector_of(1, bytes);
        if (bytes <= 1024) bench.message(gather(1, one));
        auto out = bench.drain();
        for (std::uint32_t first = 0; bytes > 1024 && first * kPiece < bytes; first += 20) {
            bench.message(pieces(1, first, 20, one));
            for (Out& more : bench.drain()) out.push_back(std::move(more));
        }
        cr_assert_eq(count(out, Effect::Kind::gathered), 1U);
        cr_assert(count(out, Kind::release) == 0 && count(out, Effect::Kind::complete) == 0);
        cr_assert_eq(bench.engine.arrived(kFirst), bytes, "what is combined can be forwarded");
        cr_assert(buffer == mixed({0, 1}, bytes));
        const ByteString changed = vector_of(50, bytes);
        std::copy(changed.begin(), changed.end(), buffer.begin());
        cr_assert_not(bench.engine.release(operation_of(1), bench.now));
        cr_assert(bench.engine.release(kFirst, bench.now));
        cr_assert_not(bench.engine.release(kFirst, bench.now), "once");
        out = bench.drain();
        cr_assert_gt(count(out, Kind::release), 0U);
        if (bytes > 0)
            cr_assert(
                std::equal(buffer.begin(), buffer.begin() + 100, the(out, Kind::release).payload.begin()));
    }
}

Test(reductions, a_held_barrier) {
    Bench bench(config_of(0, 2));
    bench.join();
    cr_assert(bench.engine.submit({.kind = CollectiveKind::barrier, .hold = true}, bench.now).ok());
    bench.message(packet(Kind::gather, 1, 0, 0));
    auto out = bench.drain();
    cr_assert(out.size() == 1 && out[0].kind == Effect::Kind::gathered && out[0].operation == 0);
    cr_assert(bench.engine.release(kFirst, bench.now));
    out = bench.drain();
    cr_assert(count(out, Kind::release) == 1 && count(out, Effect::Kind::complete) == 1);
}

Test(reductions, a_contribution_that_comes_bit_by_bit) {
    const std::uint64_t bytes = 4 * kPiece;
    Bench bench(config_of(2, 3));
    bench.join();
    ByteString buffer = vector_of(2, bytes), small = vector_of(2, 8);
    auto streaming = [&](ByteString& vector) {
        return bench.engine.submit({.kind = CollectiveKind::reduce,
                                    .buffer = vector.data(),
                                    .bytes = vector.size(),
                                    .ready = 0,
                                    .combiner = {mix_words, 4}},
                                   bench.now);
    };
    cr_assert(streaming(buffer).ok() && streaming(small).ok());
    bench.message(packet(Kind::credit, 0, 4, bytes | wire::kReduceFlag));
    cr_assert(bench.drain().empty());
    bench.engine.advance(operation_of(1), 8, bench.now);
    cr_assert_eq(count(bench.drain(), Kind::gather), 1U);
    bench.engine.advance(kFirst, 2 * kPiece + 5, bench.now);
    cr_assert_eq(the(bench.drain(), Kind::contribution).payload.size(), 2U * kPiece);
    bench.engine.advance(kFirst, bytes, bench.now);
    const auto out = bench.drain();
    cr_assert_eq(the(out, Kind::contribution).payload.size(), 2U * kPiece);
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
}

// A message with an unaligned payload is combined from a copy.
Test(reductions, gathered_vectors_at_any_address) {
    for (std::size_t shift = 0; shift < 16; ++shift) {
        Bench bench(config_of(0, 2));
        bench.join();
        ByteString buffer = vector_of(0, 1000);
        cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
        const ByteString message = bench.bytes_of(gather(1, vector_of(1, 1000), true));
        ByteString moved(shift);
        moved.insert(moved.end(), message.begin(), message.end());
        bench.engine.on_message(Bytes(moved).subspan(shift), bench.now);
        cr_assert(buffer == mixed({0, 1}, 1000), "at %zu", shift);
    }
}

Test(reductions, payloads_at_any_address) {
    const std::uint64_t bytes = 10 * kPiece;
    for (std::size_t shift = 0; shift < 16; ++shift) {
        Bench bench(config_of(0, 2));
        bench.join();
        ByteString buffer = vector_of(0, bytes);
        cr_assert(bench.reduction(CollectiveKind::reduce, buffer).ok());
        const ByteString message = bench.bytes_of(pieces(1, 0, 10, vector_of(1, bytes), true));
        ByteString moved(shift);
        moved.insert(moved.end(), message.begin(), message.end());
        bench.engine.on_message(Bytes(moved).subspan(shift), bench.now);
        cr_assert(buffer == mixed({0, 1}, bytes), "at %zu", shift);
    }
}
