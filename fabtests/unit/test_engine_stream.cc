// A root with only a prefix of its message: the fragments sent and stored, the answers, and the receivers'
// handling of the root's silence.
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;

namespace {

constexpr std::uint32_t kStreamFragment = 1424;
constexpr std::uint64_t kStreamed = 100 * kStreamFragment;

Packet nak(std::uint32_t sender, std::uint64_t operation, std::uint32_t from, std::uint64_t total,
           unsigned bits = 1) {
    return {.kind = Kind::nak,
            .sender = sender,
            .operation = operation,
            .fragment = from,
            .total = total,
            .payload = {static_cast<std::byte>(bits)},
            .key = {},
            .epoch = {}};
}

Packet partial(Packet packet) {
    packet.total |= wire::kPartialFlag;
    return packet;
}

struct StreamingRoot : Bench {
    explicit StreamingRoot(std::uint64_t bytes, std::uint64_t ready)
        : Bench(config_of(0, 3)), buffer(content(bytes)) {
        join();
        cr_assert(stream(buffer, ready).ok());
    }
    ByteString buffer;
};

std::vector<std::uint32_t> requested(const std::vector<Out>& all) {
    std::vector<std::uint32_t> fragments;
    for (const Out& out : all) {
        if (out.kind != Effect::Kind::message || out.header.kind != Kind::nak) continue;
        for (std::uint32_t i = 0; i < out.payload.size() * 8; ++i)
            if ((std::to_integer<unsigned>(out.payload[i / 8]) >> (i % 8) & 1) != 0)
                fragments.push_back(index_of(out.header.fragment) + i);
    }
    return fragments;
}

}  // namespace

TestSuite(streaming, .timeout = 300);

Test(streaming, a_large_message_goes_out_as_far_as_whole_fragments_are_ready) {
    StreamingRoot root(kStreamed, 0);
    const struct {
        std::uint64_t ready;
        std::size_t sent;
    } rows[] = {{0, 0}, {kStreamFragment - 1, 0},     {kStreamFragment, 1},
                {1, 0}, {5 * kStreamFragment + 7, 4}, {40 * kStreamFragment, 35}};
    std::size_t sum = 0;
    for (const auto& row : rows) {
        root.engine.advance(kFirst, row.ready, root.now);
        const auto out = root.drain();
        cr_assert_eq(count(out, Kind::fragment), row.sent, "at %zu", static_cast<std::size_t>(row.ready));
        for (const Out& one : out)
            cr_assert_eq(one.header.total, kStreamed | wire::kPartialFlag, "the root does not have it all");
        sum += row.sent;
        cr_assert_eq(root.engine.arrived(kFirst), sum * kStreamFragment);
    }
    root.engine.advance(kFirst, kStreamed, root.now);
    const auto rest = root.drain();
    cr_assert_eq(count(rest, Kind::fragment), 24U, "a window has 64");
    cr_assert_eq(rest.front().header.total, kStreamed);
    cr_assert_eq(count(rest, Effect::Kind::complete), 0U);
}

Test(streaming, a_small_message_waits_for_its_last_byte) {
    StreamingRoot root(4000, 3999);
    cr_assert(root.drain().empty());
    cr_assert_eq(root.engine.arrived(kFirst), 0U);
    root.message(nak(1, 0, 0, 4000, 7));
    cr_assert(root.drain().empty(), "remembered");
    cr_assert_eq(root.engine.next_deadline().value > root.now.value, true);
    root.engine.advance(kFirst, 4000, root.now);
    const auto out = root.drain();
    cr_assert_eq(count(out, Effect::Kind::complete), 1U);
    cr_assert_eq(count(out, Kind::fragment), 3U);
    cr_assert_eq(count(out, Kind::data), 1U, "and answered");
    cr_assert_eq(root.engine.arrived(kFirst), 4000U);
}

Test(streaming, operations_of_the_same_root_keep_their_order_and_others_pass) {
    StreamingRoot root(4000, 0);
    ByteString second = content(10), third(20);
    cr_assert(root.broadcast(0, second).ok());
    cr_assert(root.broadcast(2, third).ok());
    auto out = root.drain();
    cr_assert_eq(count(out, Kind::fragment), 0U, "the second waits behind the first");
    cr_assert_eq(count(out, Effect::Kind::complete), 1U, "though its caller has its buffer back");
    root.datagram(root.fragment(2, 2, 0, content(20)));
    cr_assert_eq(count(root.drain(), Effect::Kind::complete), 1U, "the third is another root's");
    root.engine.advance(kFirst, 4000, root.now);
    out = root.drain();
    cr_assert_eq(count(out, Kind::fragment), 4U);
}

Test(streaming, naks_before_the_data_are_queued_and_answered_later) {
    StreamingRoot root(kStreamed, 2 * kStreamFragment);
    cr_assert_eq(count(root.drain(), Kind::fragment), 2U);
    root.message(nak(1, 0, 0, kStreamed, 0b1111));
    auto out = root.drain();
    cr_assert_eq(count(out, Kind::data), 1U);
    cr_assert_eq(out.front().payload.size(), 2U * kStreamFragment);
    cr_assert_eq(out.front().header.total, kStreamed | wire::kPartialFlag);
    root.engine.advance(kFirst, 3 * kStreamFragment, root.now);
    out = root.drain();
    cr_assert_eq(count(out, Kind::fragment), 1U);
    cr_assert_eq(count(out, Kind::data), 1U);
}

Test(streaming, a_root_nak_is_answered_with_what_was_multicast) {
    StreamingRoot root(kStreamed, 2 * kStreamFragment);
    root.drain();
    Packet root_nak = nak(1, 0, 0, 0, 0b1110);
    root_nak.kind = Kind::root_nak;
    root.message(root_nak);
    const auto out = root.drain();
    cr_assert_eq(count(out, Kind::fragment), 1U);
    cr_assert_eq(index_of(out.front().header.fragment), 1U);
}

Test(streaming, an_operation_that_waits_for_a_slot_can_be_advanced) {
    Bench bench(config_of(0, 2));
    ByteString buffer = content(kStreamed);
    cr_assert(bench.stream(buffer, 0).ok());
    bench.engine.advance(kFirst, 3 * kStreamFragment, bench.now);
    cr_assert_eq(bench.engine.arrived(kFirst), 0U, "it has not begun");
    bench.engine.start(bench.now);
    bench.lead();
    bench.vote_all_well();
    cr_assert_eq(count(bench.drain(), Kind::fragment), 3U);
}

Test(streaming, what_cannot_be_meant_changes_nothing) {
    StreamingRoot root(kStreamed, 2 * kStreamFragment);
    root.drain();
    root.engine.advance(operation_of(77), kStreamed, root.now);
    root.engine.advance(kFirst, kStreamFragment, root.now);
    cr_assert(root.drain().empty());
    cr_assert_eq(root.engine.arrived(operation_of(77)), 0U);
    // No member can have data that the root has not sent.
    const engine::Counters before = root.engine.counters();
    Packet data = root.fragment(1, 0, 5, root.buffer);
    data.kind = Kind::data;
    root.message(data);
    const std::string counted = changed(before, root.engine.counters());
    cr_assert(counted == "messages_received bad_fragment", "%s", counted.c_str());
    cr_assert_eq(root.engine.arrived(kFirst), 2U * kStreamFragment);
}

// Each row is the state of a receiver when no more data arrive.
Test(streaming, silence_of_a_root_that_lacks_bytes_causes_a_nak_for_one_fragment) {
    const struct {
        std::uint32_t received;
        bool lacks;  // whether the root lacks bytes
        std::size_t min, max;
    } rows[] = {{0, false, 1, 1}, {1, true, 1, 1}, {10, true, 1, 1}, {10, false, 54, 54}, {60, true, 1, 1}};
    const ByteString sent = content(kStreamed);
    for (const auto& row : rows) {
        Bench bench(config_of(2, 4));
        bench.join();
        ByteString buffer(kStreamed);
        cr_assert(bench.broadcast(0, buffer).ok());
        for (std::uint32_t i = 0; i < row.received; ++i) {
            Packet fragment = bench.fragment(0, 0, i, sent);
            bench.datagram(row.lacks ? partial(fragment) : fragment);
        }
        cr_assert_eq(bench.engine.arrived(kFirst), std::uint64_t{row.received} * kStreamFragment);
        const auto fragments = requested(bench.pass(Nanoseconds::from_ms(90)));
        cr_assert_geq(fragments.size(), row.min, "after %u", row.received);
        cr_assert_leq(fragments.size(), row.max, "after %u", row.received);
        cr_assert_eq(fragments.front(), row.received);
    }
}

// The first answer with the tested data may merely have been faster than the multicast.
Test(streaming, two_answers_in_a_row_indicate_an_outage) {
    Bench bench(config_of(2, 4));
    bench.join();
    const ByteString sent = content(kStreamed);
    ByteString buffer(kStreamed);
    cr_assert(bench.broadcast(0, buffer).ok());
    auto answer = [&](std::uint32_t index) {
        Packet data = partial(bench.fragment(0, 0, index, sent));
        data.kind = Kind::data;
        data.sender = 1;
        bench.message(data);
        return requested(bench.pass(Nanoseconds::from_ms(90)));
    };
    bench.datagram(partial(bench.fragment(0, 0, 0, sent)));
    cr_assert_eq(requested(bench.pass(Nanoseconds::from_ms(90))).size(), 1U);
    cr_assert_eq(answer(1).size(), 1U, "another poll");
    bench.datagram(partial(bench.fragment(0, 0, 2, sent)));
    cr_assert_eq(requested(bench.pass(Nanoseconds::from_ms(90))).size(), 1U);
    cr_assert_eq(answer(3).size(), 1U, "the multicast arrived between");
    cr_assert_eq(answer(4).size(), 2U, "now for more and more");
}

Test(streaming, an_early_flag_does_not_outlive_a_later_fragment_without) {
    Bench bench(config_of(2, 4));
    bench.join();
    const ByteString sent = content(kStreamed);
    ByteString buffer(kStreamed);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.datagram(bench.fragment(0, 0, 1, sent));
    bench.datagram(partial(bench.fragment(0, 0, 0, sent)));
    cr_assert_gt(requested(bench.pass(Nanoseconds::from_ms(90))).size(), 30U, "the first window was sent");
}

Test(streaming, a_member_supplies_what_it_has_and_says_what_it_knows_of_the_root) {
    Bench bench(config_of(1, 3));
    bench.join();
    const ByteString sent = content(kStreamed);
    ByteString buffer(kStreamed);
    cr_assert(bench.broadcast(0, buffer).ok());
    bench.datagram(partial(bench.fragment(0, 0, 0, sent)));
    bench.message(nak(2, 0, 0, kStreamed));
    const auto out = bench.drain();
    cr_assert_eq(count(out, Kind::data), 1U);
    cr_assert_eq(out.back().header.total, kStreamed | wire::kPartialFlag);
}
