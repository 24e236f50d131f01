// What an endpoint remembers of joins for who comes too early or too late.
#include <criterion/criterion.h>

#include "group/joins.h"

using namespace mcastcoll;
using group::JoinMemory;

namespace {

wire::Hello hello_of(std::uint32_t sequence, std::uint32_t rank) {
    wire::Hello hello;
    hello.id = {7, sequence};
    hello.rank = rank_of(rank);
    return hello;
}

std::size_t early_count(JoinMemory& memory) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& early : memory.early()) ++count;
    return count;
}

}  // namespace

Test(join_memory, the_latest_greeting_from_a_place_counts) {
    JoinMemory memory;
    const group::Source here(6, std::byte{1});
    memory.keep_early(hello_of(0, 1), {}, here);
    memory.keep_early(hello_of(0, 1), {}, here);
    memory.keep_early(hello_of(0, 2), {}, here);
    memory.keep_early(hello_of(1, 1), {}, here);
    cr_assert_eq(early_count(memory), 3U);
    memory.forget_early({7, 0});
    cr_assert_eq(early_count(memory), 1U);
}

Test(join_memory, a_join_that_was_given_up_is_told_of_once) {
    JoinMemory memory;
    memory.keep_given_up({7, 0}, wire::ByteString{std::byte{3}});
    cr_assert_not(memory.take_given_up({7, 1}).has_value());
    const auto leader = memory.take_given_up({7, 0});
    cr_assert(leader.has_value() && *leader == wire::ByteString{std::byte{3}});
    cr_assert_not(memory.take_given_up({7, 0}).has_value());
}

// One less, exactly, one more than it remembers.
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
        cr_assert_eq(memory.failed_group({7, count - 1})->word.error, 104U);
    }
}

Test(join_memory, keys_of_lists_are_the_latest) {
    for (const std::uint64_t count : {255U, 256U, 257U}) {
        JoinMemory memory;
        for (std::uint64_t list = 0; list < count; ++list) memory.keep_key(list, wire::Key{std::byte{1}});
        memory.keep_key(count - 1, {});
        cr_assert_eq(memory.key_of(0) != nullptr, count <= 256);
        cr_assert(memory.key_of(count - 1)->has_value(), "the first word counts");
        cr_assert_null(memory.key_of(count));
    }
}

Test(join_memory, early_greetings_are_bounded_by_their_bytes) {
    wire::Hello hello = hello_of(0, 1);
    hello.peer.place.resize(wire::kMostAddressBytes);
    hello.peer.watch_point.resize(wire::kMostAddressBytes);
    const auto each = [&] { return JoinMemory::EarlyHello{hello, {}, {}}.bytes(); };
    cr_assert_geq(each(), sizeof hello + 2 * wire::kMostAddressBytes);
    cr_assert_gt(JoinMemory::kEarlyBytes / each(), 64 * 32,
                 "of dozens of joins that this member gathers for");
    hello.peer.place.resize(10'000);  // fewer of them, for a quick test
    const std::size_t most = JoinMemory::kEarlyBytes / each();
    for (const std::size_t count : {most - 1, most, most + 1}) {
        JoinMemory memory;
        for (std::uint32_t i = 0; i < count; ++i) {
            hello.id.sequence = i;
            memory.keep_early(hello, {}, {});
        }
        cr_assert_eq(early_count(memory), std::min(count, most));
        memory.forget_early({7, 5});
        memory.keep_early(hello_of(5, 1), {}, {});
        cr_assert_eq(early_count(memory), std::min(count, most), "what is forgotten makes room");
    }
}

// From who was started again it is no late one, whatever its number: that one counts from zero.
Test(join_memory, a_greeting_for_a_join_that_is_over_comes_late) {
    JoinMemory memory;
    const wire::Hello fourth = hello_of(4, 1);
    cr_assert_not(memory.comes_late(fourth));
    memory.keep_greeted(7, {&fourth});
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
    memory.keep_greeted(7, {&second, &of_two});
    cr_assert(memory.comes_late(hello_of(4, 1)), "joins may end in another order than they were called in");
    cr_assert(memory.comes_late(hello_of(2, 2)));
    memory.keep_greeted(7, {&again});
    cr_assert(memory.comes_late(again));
    cr_assert_not(memory.comes_late(hello_of(4, 1)), "of the process before nothing is known any more");
}

Test(join_memory, who_has_greeted_is_remembered_of_the_latest_lists) {
    for (const std::uint64_t count : {63U, 64U, 65U}) {
        JoinMemory memory;
        wire::Hello hello = hello_of(0, 1);
        for (hello.id.list_hash = 1; hello.id.list_hash <= count; ++hello.id.list_hash) {
            memory.keep_greeted(hello.id.list_hash, {&hello});
            memory.keep_greeted(hello.id.list_hash, {&hello});
        }
        hello.id.list_hash = 1;
        cr_assert_eq(memory.comes_late(hello), count <= 64);
    }
}
