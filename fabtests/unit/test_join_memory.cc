// Records of joins kept by an endpoint for members that come too early or too late.
#include <criterion/criterion.h>

#include "group/join_memory.h"
#include "wire/bytes.h"

using namespace mcastcoll;
using group::PendingHellos, group::PendingHello, group::JoinMemory;

namespace {

wire::Hello hello_of(std::uint32_t sequence, std::uint32_t rank) {
    wire::Hello hello;
    hello.id = {7, sequence};
    hello.rank = rank_of(rank);
    return hello;
}

wire::ByteString place(std::uint32_t number) {
    wire::ByteString bytes(sizeof number);
    wire::put(bytes.data(), number);
    return bytes;
}

}  // namespace

Test(join_memory, the_latest_hello_from_a_place_counts) {
    PendingHellos early;
    const group::Source here = place(1);
    early.keep({hello_of(0, 1), place(1), here});
    early.keep({hello_of(0, 1), place(2), here});
    early.keep({hello_of(0, 2), {}, here});
    early.keep({hello_of(1, 1), {}, here});
    cr_assert_eq(early.size(), 3U);
    const auto is_first = [](const PendingHello& one) {
        return one.hello.id.sequence == 0 && one.hello.rank == rank_of(1);
    };
    cr_assert(early.latest(is_first)->datagram == place(2));
    early.forget({7, 0});
    cr_assert_eq(early.size(), 1U);
    cr_assert_null(early.latest(is_first));
}

// A source of many hellos does not use the room of other sources. Tested at limit - 1, limit and limit + 1.
Test(join_memory, pending_hellos_of_a_place_are_bounded) {
    constexpr std::uint32_t kMax = PendingHellos::kMaxOfSource;
    for (const std::uint32_t count : {kMax - 1, kMax, kMax + 1, 3 * kMax}) {
        PendingHellos early;
        early.keep({hello_of(0, 7), {}, place(1)});
        for (std::uint32_t i = 0; i < count; ++i) early.keep({hello_of(i, 1), {}, place(2)});
        cr_assert_eq(early.size(), 1 + std::min(count, kMax));
        std::uint32_t next = count;
        early.visit([&](const PendingHello& one) {
            if (one.source == place(2)) cr_assert_eq(one.hello.id.sequence, --next, "the oldest go first");
        });
        cr_assert_not_null(early.latest([](const PendingHello& one) { return one.source == place(1); }));
    }
}

Test(join_memory, an_abandoned_join_is_reported_once) {
    JoinMemory memory;
    memory.keep_given_up({7, 0}, wire::ByteString{std::byte{3}});
    cr_assert_not(memory.take_given_up({7, 1}).has_value());
    const auto leader = memory.take_given_up({7, 0});
    cr_assert(leader.has_value() && *leader == wire::ByteString{std::byte{3}});
    cr_assert_not(memory.take_given_up({7, 0}).has_value());
}

// The memory keeps 64 joins: tested at limit - 1, limit and limit + 1.
Test(join_memory, forgets_the_oldest) {
    for (const std::uint32_t count : {63U, 64U, 65U}) {
        JoinMemory memory;
        for (std::uint32_t i = 0; i < count; ++i) {
            memory.keep_failed({7, i}, 100);
            memory.keep_given_up({7, i}, {});
            memory.keep_failed_group({{{7, i}, 104, kNoRank}, {}, {}});
        }
        const bool remembers = count <= 64;
        cr_assert_eq(memory.failed({7, 0}) != nullptr, remembers);
        cr_assert_eq(memory.failed_group({7, 0}) != nullptr, remembers);
        cr_assert_eq(memory.take_given_up({7, 0}).has_value(), remembers);
        cr_assert_eq(memory.failed({7, count - 1})->error, 100U);
        cr_assert_eq(memory.failed_group({7, count - 1})->ended.error, 104U);
    }
}

Test(join_memory, keys_of_lists_are_the_latest) {
    for (const std::uint64_t count : {255U, 256U, 257U}) {
        JoinMemory memory;
        for (std::uint64_t list = 0; list < count; ++list) memory.keep_key(list, wire::Key{std::byte{1}});
        memory.keep_key(count - 1, {});
        cr_assert_eq(memory.key_of(0) != nullptr, count <= 256);
        cr_assert(memory.key_of(count - 1)->has_value(), "the first message counts");
        cr_assert_null(memory.key_of(count));
    }
}

Test(join_memory, pending_hellos_are_bounded_by_their_bytes) {
    wire::Hello hello = hello_of(0, 1);
    hello.peer.place.resize(wire::kMaxAddressBytes);
    hello.peer.watch_point.resize(wire::kMaxAddressBytes);
    const auto each = [&] { return PendingHello{hello, {}, place(0)}.bytes(); };
    cr_assert_geq(each(), sizeof hello + 2 * wire::kMaxAddressBytes);
    cr_assert_gt(PendingHellos::kMaxBytes / each(), 64 * 32,
                 "of dozens of joins that this member gathers for");
    hello.peer.place.resize(10'000);  // larger, so that fewer fit and the test is quick
    const std::size_t max = PendingHellos::kMaxBytes / each();
    for (const std::size_t count : {max - 1, max, max + 1}) {
        PendingHellos early;
        for (std::uint32_t i = 0; i < count; ++i) {
            hello.id.sequence = i;
            early.keep({hello, {}, place(i)});
        }
        cr_assert_eq(early.size(), std::min(count, max));
        early.forget({7, 5});
        early.keep({hello_of(5, 1), {}, place(5)});
        cr_assert_eq(early.size(), std::min(count, max), "what is forgotten makes room");
    }
}

// A hello of a restarted process is never late, regardless of the number: the process counts from zero.
Test(join_memory, a_hello_for_a_join_that_is_over_comes_late) {
    JoinMemory memory;
    const wire::Hello fourth = hello_of(4, 1);
    cr_assert_not(memory.comes_late(fourth));
    memory.keep_hellos(7, {&fourth});
    for (const std::uint32_t sequence : {0U, 3U, 4U, 5U})
        cr_assert_eq(memory.comes_late(hello_of(sequence, 1)), sequence <= 4, "%u", sequence);
    cr_assert_not(memory.comes_late(hello_of(4, 2)), "another rank");
    wire::Hello other_list = hello_of(4, 1);
    other_list.id.list_hash = 8;
    cr_assert_not(memory.comes_late(other_list));
    wire::Hello again = hello_of(0, 1);
    again.peer.private_address = {std::byte{9}};
    cr_assert_not(memory.comes_late(again), "another process");

    const wire::Hello second = hello_of(2, 1), of_two = hello_of(2, 2);
    memory.keep_hellos(7, {&second, &of_two});
    cr_assert(memory.comes_late(hello_of(4, 1)), "joins may end in another order than they were called in");
    cr_assert(memory.comes_late(hello_of(2, 2)));
    memory.keep_hellos(7, {&again});
    cr_assert(memory.comes_late(again));
    cr_assert_not(memory.comes_late(hello_of(4, 1)), "of the process before nothing is known any more");
}

Test(join_memory, hellos_of_the_latest_lists_are_remembered) {
    for (const std::uint64_t count : {63U, 64U, 65U}) {
        JoinMemory memory;
        wire::Hello hello = hello_of(0, 1);
        for (hello.id.list_hash = 1; hello.id.list_hash <= count; ++hello.id.list_hash) {
            memory.keep_hellos(hello.id.list_hash, {&hello});
            memory.keep_hellos(hello.id.list_hash, {&hello});
        }
        hello.id.list_hash = 1;
        cr_assert_eq(memory.comes_late(hello), count <= 64);
    }
}
