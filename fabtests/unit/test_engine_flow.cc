// Flow control: how far a root may run ahead, what a large broadcast waits for, barriers, NAKs and
// watermarks.
#include <bit>

#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

Packet report(std::uint32_t sender, std::uint32_t fragments, std::uint64_t total) {
    return {.kind = Kind::report,
            .sender = sender,
            .fragment = fragments,
            .total = total,
            .payload = {},
            .key = {},
            .epoch = {}};
}

Packet plain_packet(Kind kind, std::uint32_t sender, std::uint64_t operation, std::uint64_t total = 0) {
    return {.kind = kind,
            .sender = sender,
            .operation = operation,
            .total = total,
            .payload = {},
            .key = {},
            .epoch = {}};
}

constexpr std::uint32_t kFragments = 500;

// Returns how many fragments all NAKs together request.
std::size_t fragments_requested(const std::vector<Out>& all) {
    std::size_t sum = 0;
    for (const Out& out : all)
        if (out.kind == Effect::Kind::message && out.header.kind == Kind::nak)
            for (const std::byte byte : out.payload) sum += std::popcount(std::to_integer<unsigned>(byte));
    return sum;
}

// A root (rank 0 of 3) that has submitted a large broadcast. It gets reports from ranks 1 and 2, and answers
// the NAKs of rank 1.
struct Root : Bench {
    Root() : Bench(config_of(0, 3)), buffer(content(std::uint64_t{kFragments} * 1424)) {
        join();
        cr_assert(broadcast(0, buffer).ok());
    }
    std::size_t sent() { return count(drain(), Kind::fragment); }
    ByteString buffer;
};

}  // namespace

TestSuite(flow, .timeout = 300);

Test(flow, a_root_begins_with_a_window) {
    Root root;
    cr_assert_eq(root.sent(), root.engine.config().window);
    root.pass(Nanoseconds::from_ms(50));
    cr_assert_eq(root.sent(), 0U, "time alone opens no window");
    root.message(report(1, 16, root.buffer.size()));
    cr_assert_eq(root.sent(), 0U, "one report is not all");
    root.message(report(2, 16, root.buffer.size()));
    cr_assert_eq(root.sent(), 16U);
}

Test(flow, a_root_is_never_more_than_a_window_ahead_of_the_slowest) {
    Root root;
    std::size_t sent = root.sent();
    std::uint32_t one = 0, two = 0;
    for (int i = 0; two < kFragments; ++i) {
        one = std::min<std::uint32_t>({one + 30, kFragments, static_cast<std::uint32_t>(sent)});
        if (i % 2 == 1)
            two = std::min<std::uint32_t>({two + 20, kFragments, static_cast<std::uint32_t>(sent)});
        root.message(report(1, one, root.buffer.size()));
        root.message(report(2, two, root.buffer.size()));
        sent += root.sent();
        cr_assert_leq(sent, std::min(one, two) + root.engine.config().window);
        cr_assert_lt(i, 1000);
    }
    cr_assert_eq(sent, kFragments, "every fragment exactly once");
}

Test(flow, two_large_broadcasts_share_the_window) {
    Root root;
    ByteString second = root.buffer;
    cr_assert(root.broadcast(0, second).ok());
    cr_assert_eq(root.sent(), root.engine.config().window);
}

Test(flow, a_large_broadcast_ends_when_reports_and_clients_are_done) {
    for (bool reports_first : {true, false}) {
        Root root;
        root.message(report(1, 0, root.buffer.size()));
        root.message(report(2, 0, root.buffer.size()));
        root.drain();
        auto reports = [&] {
            root.message(report(1, kFragments, root.buffer.size()));
            root.message(report(2, kFragments, root.buffer.size()));
        };
        if (reports_first) reports();
        if (!reports_first) root.message(plain_packet(Kind::done, 1, 0, root.buffer.size()));
        cr_assert_eq(count(root.drain(), Effect::Kind::complete), 0U);
        if (!reports_first) reports();
        if (reports_first) root.message(plain_packet(Kind::done, 1, 0, root.buffer.size()));
        const auto out = root.drain();
        cr_assert_eq(count(out, Effect::Kind::complete), 1U);
        cr_assert_eq(out.front().operation, 0U);
        cr_assert_eq(count(out, Kind::fragment), 0U, "the buffer is the application's again");
    }
}

Test(flow, nothing_is_asserted_when_a_report_claims_what_cannot_be) {
    Bench bench(config_of(0, 2));
    bench.join();
    bench.message(report(1, UINT32_MAX - 1, 100000));
    bench.message(plain_packet(Kind::done, 1, 0, 100000));
    ByteString buffer(100000);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.drain();
    for (int i = 0; i < 3; ++i) bench.message(report(1, UINT32_MAX, 100000));
    bench.drain();
}

Test(flow, a_small_broadcast_ends_at_once_at_its_root) {
    Bench bench(config_of(0, 3));
    bench.join();
    ByteString buffer = content(8000);
    cr_assert(bench.broadcast(0, buffer).ok());
    const auto out = bench.drain();
    cr_assert(out.front().kind == Effect::Kind::complete);
    cr_assert_eq(count(out, Kind::fragment), 6U);
    std::fill(buffer.begin(), buffer.end(), std::byte{0});  // a repair comes from the retransmit buffer
    bench.message({.kind = Kind::nak,
                   .sender = 1,
                   .total = 8000,
                   .payload = {std::byte{0b100}},
                   .key = {},
                   .epoch = {}});
    const auto repair = bench.drain();
    cr_assert_eq(repair.size(), 1U);
    cr_assert(repair[0].header.kind == Kind::data && repair[0].to == rank_of(1));
    cr_assert_eq(index_of(repair[0].header.fragment), 2U);
    const ByteString good = content(8000);
    cr_assert(std::equal(repair[0].payload.begin(), repair[0].payload.end(), good.begin() + 2 * 1424));
}

// Messages as large as the retransmit buffer, so that only a few are kept between two checkpoints.
Test(flow, a_checkpoint_comes_early_where_many_bytes_are_kept) {
    engine::GroupConfig config = config_of(1, 2);
    config.checkpoint_bytes = 5 * 8000;
    Bench bench(config);
    bench.join();
    ByteString buffer = content(8000);
    for (std::uint64_t i = 1; i <= 12; ++i) {
        cr_assert(bench.broadcast(1, buffer).ok());
        const auto out = bench.drain();
        cr_assert_eq(count(out, Kind::watermark_up), i % 5 == 0 ? 1U : 0U, "operation %zu", std::size_t{i});
        for (const Out& one : out)
            if (one.header.kind == Kind::watermark_up) cr_assert_eq(number_of(one.header.operation), i);
    }
}

std::byte* buffers = nullptr;

Test(flow, a_retransmit_buffer_that_was_given_back_is_the_next_to_be_used) {
    engine::GroupConfig config = config_of(1, 2);
    config.checkpoint_bytes = 5 * 8000;
    config.memory.take = [](std::size_t bytes) {
        std::byte* const memory = new std::byte[bytes]();
        if (buffers == nullptr) buffers = memory;
        return memory;
    };
    Bench bench(config);
    bench.join();
    ByteString buffer = content(8000);
    std::fill(buffer.begin(), buffer.end(), std::byte{1});
    for (std::uint64_t i = 1; i <= 100; ++i) {
        cr_assert(bench.broadcast(1, buffer).ok());
        if (count(bench.drain(), Kind::watermark_up) == 1)
            bench.message(plain_packet(Kind::watermark_down, 0, i));
    }
    std::uint32_t touched = 0;
    for (std::uint32_t i = 0; i < config.operation_slots; ++i)
        touched += buffers[std::size_t{i} * config.retransmit_bytes] != std::byte{0};
    cr_assert_eq(touched, 5U);
}

Test(flow, completed_operations_are_neither_multicast_nor_repaired) {
    Bench bench(config_of(0, 2));
    bench.join();
    ByteString buffer = content(8000);
    for (int i = 0; i < 16; ++i) cr_assert(bench.broadcast(0, buffer).ok());
    Packet nak = plain_packet(Kind::nak, 1, 3, 8000);
    nak.payload = {std::byte{0b100}};
    bench.drain({.multicast = false, .message = false});
    bench.message(nak);
    bench.message(plain_packet(Kind::watermark_up, 1, 16));  // rank 1 has meanwhile finished 16 operations
    bench.message(nak);
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::fragment), 0U);
    cr_assert_eq(count(out, Kind::data), 0U);
    cr_assert_eq(count(out, Kind::watermark_down), 1U);
}

Test(flow, a_root_is_never_more_than_its_slots_ahead_of_the_watermark) {
    Bench bench(config_of(0, 2));
    bench.join();
    ByteString buffer(8);
    for (int i = 0; i < 100; ++i) cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.drain(), Kind::fragment), 64U);
    bench.message(plain_packet(Kind::watermark_up, 1, 16));
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::fragment), 16U);
    cr_assert_eq(count(out, Kind::watermark_down), 1U);
    bench.message(plain_packet(Kind::watermark_up, 1, 16));  // a replay
    cr_assert_eq(bench.drain().size(), 0U);
    // The root has finished 80 operations and has 64 slots, so rank 1 cannot have finished more than 80 + 64.
    bench.message(plain_packet(Kind::watermark_up, 1, 80 + 64 + 1));
    cr_assert_eq(bench.drain().size(), 0U);
    cr_assert_eq(bench.engine.counters().unexpected_kind, 1U);
    bench.message(plain_packet(Kind::watermark_up, 1, 64));
    cr_assert_eq(count(bench.drain(), Kind::fragment), 20U);
}

Test(flow, a_queued_nak_is_answered_when_the_fragment_comes) {
    Bench bench(config_of(1, 4));
    bench.join();
    ByteString buffer(5000);
    const ByteString sent = content(5000);
    // Rank 2 sends a NAK before this member has posted, and before this member has data.
    bench.message({.kind = Kind::nak,
                   .sender = 2,
                   .total = 5000,
                   .payload = {std::byte{0b1001}},
                   .key = {},
                   .epoch = {}});
    cr_assert(bench.drain().empty());
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.drain(), Kind::data), 0U);
    bench.datagram(bench.fragment(0, 0, 3, sent));
    auto out = bench.drain();
    cr_assert_eq(count(out, Kind::data), 1U);
    cr_assert_eq(index_of(out[0].header.fragment), 3U);
    bench.datagram(bench.fragment(0, 0, 1, sent));
    cr_assert_eq(count(bench.drain(), Kind::data), 0U, "no NAK names that one");
    bench.datagram(bench.fragment(0, 0, 0, sent));
    cr_assert_eq(count(bench.drain(), Kind::data), 1U);
}

Test(flow, naks_may_overtake_each_other) {
    Bench bench(config_of(1, 4));
    bench.join();
    ByteString buffer(20 * 1424);
    const ByteString sent = content(buffer.size());
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.drain();
    auto nak = [&](std::uint32_t from, unsigned bits) {
        bench.message({.kind = Kind::nak,
                       .sender = 2,
                       .fragment = from,
                       .total = buffer.size(),
                       .payload = {static_cast<std::byte>(bits)},
                       .key = {},
                       .epoch = {}});
    };
    nak(4, 0b10);       // the newer NAK arrives first: from 4 on, 5 is missing
    nak(0, 0b1001000);  // the older one: meanwhile the requester has received 3, but not 6
    for (std::uint32_t i = 0; i < 8; ++i) bench.datagram(bench.fragment(0, 0, i, sent));
    std::vector<bool> answered(8);
    for (const Out& out : bench.drain()) {
        if (out.header.kind != Kind::data) continue;
        const std::uint32_t from = index_of(out.header.fragment);
        for (std::uint32_t i = 0; i < out.payload.size() / 1424; ++i) answered[from + i] = true;
    }
    cr_assert(answered[5] && answered[6], "both NAKs count");
    cr_assert(!answered[3], "the newer NAK named it as received");
}

Test(flow, naks_are_sent_once_for_each_fragment) {
    Bench bench(config_of(1, 4));
    bench.join();
    ByteString buffer(20 * 1424);
    const ByteString sent = content(buffer.size());
    cr_assert(bench.broadcast(0, buffer).ok());
    for (std::uint32_t i : {0U, 2U, 5U}) bench.datagram(bench.fragment(0, 0, i, sent));
    std::vector<std::uint32_t> requested(20);
    for (const Out& out : bench.pass(Nanoseconds::from_ms(90)))
        if (out.kind == Effect::Kind::message && out.header.kind == Kind::nak)
            for (std::uint32_t i = 0; i < out.payload.size() * 8; ++i)
                if ((out.payload[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0})
                    ++requested.at(index_of(out.header.fragment) + i);
    for (std::uint32_t i = 0; i < 20; ++i)
        cr_assert_eq(requested[i], i == 0 || i == 2 || i == 5 ? 0U : 1U, "fragment %u", i);
}

TestSuite(barriers, .timeout = 300);

Test(barriers, the_leader_releases_when_all_members_have_entered) {
    Bench bench(config_of(0, 3));
    bench.join();
    cr_assert(bench.barrier().ok());
    bench.message(plain_packet(Kind::gather, 1, 0));
    cr_assert(bench.drain().empty());
    bench.message(plain_packet(Kind::gather, 2, 0));
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::release), 1U);
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
}

Test(barriers, children_may_enter_first) {
    auto config = config_of(1, 8);
    config.tree_arity = 2;  // rank 1's children are 3 and 4
    Bench bench(config);
    bench.join();
    bench.message(plain_packet(Kind::gather, 3, 0));
    bench.message(plain_packet(Kind::gather, 4, 0));
    cr_assert(bench.drain().empty());
    cr_assert(bench.barrier().ok());
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::gather), 1U);
    cr_assert(out[0].to == rank_of(0));
    bench.datagram(plain_packet(Kind::release, 0, 0));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

Test(barriers, a_lost_release_is_requested) {
    Bench bench(config_of(2, 3));
    bench.join();
    cr_assert(bench.barrier().ok());
    const auto out = bench.pass(Nanoseconds::from_ms(10));
    cr_assert_eq(count(out, Kind::gather), 1U);
    cr_assert_eq(count(out, Kind::nak), 1U);
    bench.message(plain_packet(Kind::data, 1, 0));
    cr_assert_eq(count(bench.drain(), Effect::Kind::complete), 1U);
}

// A receiver with all data sent so far requests a single fragment, and twice as many after each message with
// the requested data, because the multicast may have failed. A multicast packet shows that multicast works.
Test(flow, silence_in_a_large_broadcast_causes_a_small_nak_first) {
    const auto config = config_of(1, 4);
    Bench bench(config);
    bench.join();
    const ByteString sent = content(200'000);
    ByteString buffer(sent.size());
    cr_assert(bench.broadcast(0, buffer).ok());
    for (std::uint32_t i = 0; i < config.window; ++i) bench.datagram(bench.fragment(0, 0, i, sent));
    auto out = bench.pass(Nanoseconds::from_ms(80));
    cr_assert_eq(count(out, Kind::nak), 1U);
    for (const Out& one : out)
        if (one.header.kind == Kind::nak) {
            cr_assert_eq(index_of(one.header.fragment), config.window);
            cr_assert(one.payload == ByteString{std::byte{1}});
        }
    std::uint32_t at = config.window;
    const auto answer = [&](std::uint32_t fragments) {
        for (; fragments > 0; --fragments, ++at) {
            Packet data = bench.fragment(0, 0, at, sent);
            data.kind = Kind::data;
            bench.message(data);
        }
        return fragments_requested(bench.drain());
    };
    cr_assert_eq(answer(1), 2U);
    cr_assert_eq(answer(1), 0U, "half of them");
    cr_assert_eq(answer(1), 4U);
    bench.datagram(bench.fragment(0, 0, at + 4, sent));
    cr_assert_eq(answer(4), 0U, "it carries");
    ++at;
    cr_assert_eq(fragments_requested(bench.pass(Nanoseconds::from_ms(80))), 1U, "and is silent again");
    for (std::uint32_t reach = 2; reach < config.window; reach *= 2)
        cr_assert_eq(answer(reach / 2), reach, "%u", reach);
    cr_assert_eq(answer(config.window / 2), config.fragments(sent.size()) - at, "all the rest");
}

Test(flow, an_answer_that_comes_after_the_multicast_is_no_outage) {
    const auto config = config_of(1, 4);
    Bench bench(config);
    bench.join();
    const ByteString sent = content(200'000);
    ByteString buffer(sent.size());
    cr_assert(bench.broadcast(0, buffer).ok());
    for (std::uint32_t i = 0; i < config.window; ++i) bench.datagram(bench.fragment(0, 0, i, sent));
    cr_assert_eq(count(bench.pass(Nanoseconds::from_ms(80)), Kind::nak), 1U);
    bench.datagram(bench.fragment(0, 0, config.window, sent));
    Packet data = bench.fragment(0, 0, config.window, sent);
    data.kind = Kind::data;
    bench.message(data);
    cr_assert_eq(count(bench.drain(), Kind::nak), 0U);
}

Test(flow, a_root_keeps_a_small_nak_until_it_has_multicast_the_fragment) {
    Bench bench(config_of(0, 3));
    bench.join();
    ByteString buffer = content(300'000);
    cr_assert(bench.broadcast(0, buffer).ok());
    cr_assert_eq(count(bench.drain(), Kind::fragment), 64U);
    const Packet nak{.kind = Kind::nak,
                     .sender = 1,
                     .fragment = 64,
                     .total = 300'000,
                     .payload = {std::byte{1}},
                     .key = {},
                     .epoch = {}};
    bench.message(nak);
    cr_assert(bench.drain().empty());
    for (std::uint32_t reporter : {1U, 2U})
        bench.message({.kind = Kind::report,
                       .sender = reporter,
                       .fragment = 16,
                       .total = 300'000,
                       .payload = {},
                       .key = {},
                       .epoch = {}});
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::fragment), 16U, "as far as the reports allow");
    cr_assert_eq(count(out, Kind::data), 1U);
    cr_assert(out.back().header.kind == Kind::data, "behind the multicasts");
    // A NAK for a whole window shows that the member receives no multicast; the answer is sent at once.
    Packet window = nak;
    window.fragment = 65;
    window.payload.assign(8, std::byte{0xff});
    bench.message(window);
    std::size_t supplied = 0;
    for (const Out& one : bench.drain())
        if (one.header.kind == Kind::data) supplied += one.payload.size() / 1424;
    cr_assert_eq(supplied, 64U);
}
