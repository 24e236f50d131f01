// Groups that send to several addresses, chained and as a tree of ranges with leaders: whole groups in
// virtual time.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include "simulator_cases.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(simulator_ranges, .timeout = 600);

namespace {

// Returns options of a group in runs of these lengths, each run a range of its own (a part of the group with
// its own address).
Options split(const std::vector<std::uint32_t>& lengths, bool relay,
              engine::Repair repair = engine::Repair::pull) {
    Options options = options_of(1, repair, 1);
    options.group().relay = relay;
    options.group().ranges = static_cast<std::uint32_t>(lengths.size());
    std::uint8_t range = 0;
    for (const std::uint32_t length : lengths) {
        options.group().range_of.insert(options.group().range_of.end(), length, range);
        ++range;
    }
    options.group().members = static_cast<std::uint32_t>(options.group().range_of.size());
    return options;
}

const std::vector<std::vector<std::uint32_t>>& splits() {
    static const std::vector<std::vector<std::uint32_t>> all = {{1, 1}, {2, 1},          {1, 3, 2},
                                                                {4, 4}, {1, 1, 1, 1, 1}, {8, 4, 2, 1, 1}};
    return all;
}

void run_all(std::uint64_t seed, const Faults& faults) {
    for (const engine::Repair repair : policies())
        for (const bool relay : {false, true})
            for (const auto& lengths : splits()) {
                Options options = split(lengths, relay, repair);
                options.faults = faults;
                options.seed = seed;
                expect_success(options, mixed_script(seed, options.group().members, 80, 200'000));
            }
}

// A world after one broadcast from the first member, without losses.
struct Once : Ran {
    Once(const std::vector<std::uint32_t>& lengths, bool relay, std::uint64_t bytes)
        : Ran(split(lengths, relay), {broadcast(0, bytes)}) {}
};

}  // namespace

Test(simulator_ranges, all_is_well_without_faults) {
    run_all(1, {});
}

Test(simulator_ranges, faults_of_every_sort_are_repaired) {
    for (const std::uint64_t seed : seeds(1, 6)) {
        Faults faults;
        faults.loss = 0.1;
        faults.duplicate = 0.02;
        faults.corrupt = 0.02;
        faults.jitter = Nanoseconds::from_us(30);
        faults.messages_overtake = true;
        faults.backpressure = 0.1;
        faults.heal_at = Nanoseconds::from_ms(500);
        run_all(seed, faults);
    }
}

Test(simulator_ranges, a_range_that_goes_silent_is_served_all_the_same) {
    for (const bool relay : {false, true}) {
        Options options = split({4, 4, 2}, relay);
        const auto range_of = options.group().range_of;
        options.faults.drop = [range_of](const wire::Header& header, Rank to) {
            return header.kind != wire::Kind::probe && range_of[index_of(to)] == 1;
        };
        expect_success(options, mixed_script(3, 10, 80, 200'000));
    }
}

Test(simulator_ranges, deaf_members_and_deaf_ranges) {
    for (const bool relay : {false, true})
        for (const std::vector<bool>& no_socket :
             {std::vector<bool>{false, false, false, false, true, false, false, false, false, false},
              std::vector<bool>{true, false, false, false, true, true, true, true, false, false},
              std::vector<bool>{false, false, false, false, true, true, true, true, true, true}}) {
            Options options = split({4, 4, 2}, relay);
            options.setups[0].no_socket = no_socket;
            expect_success(options, mixed_script(5, 10, 80, 200'000));
        }
}

// Checks the number of datagrams that the root sends in each form, and the absence of duplicates.
Test(simulator_ranges, what_is_sent) {
    constexpr std::uint64_t kBytes = 100'000;
    const std::uint32_t fragments = engine::GroupConfig{}.fragments(kBytes);
    Once chained({4, 4, 8}, false, kBytes);
    cr_assert_eq(chained.engine(0).counters().datagrams_sent,
                 3 * fragments + chained.engine(0).counters().probes_sent);
    cr_assert_eq(chained.total().duplicates, 0);
    cr_assert_eq(chained.total().fragments_by_multicast, 15 * fragments);

    Once tree({4, 4, 8}, true, kBytes);
    cr_assert_eq(tree.engine(0).counters().datagrams_sent, fragments + tree.engine(0).counters().probes_sent);
    cr_assert_eq(tree.engine(4).counters().fragments_relayed, fragments);
    cr_assert_eq(tree.engine(8).counters().fragments_relayed, fragments);
    cr_assert_eq(tree.total().fragments_relayed, 2 * fragments);
    cr_assert_eq(tree.total().fragments_by_multicast, 13 * fragments, "two leaders got messages");
    cr_assert_eq(tree.total().fragments_repaired, 2 * fragments);
    cr_assert_eq(tree.total().beyond_window, 0);
}

Test(simulator_ranges, a_range_without_an_able_leader_is_chained) {
    Options options = split({4, 4}, true);
    // No member receives from members 4 to 7, but these members receive.
    options.faults.drop = [](const wire::Header& header, Rank) { return index_of(header.sender) >= 4; };
    const Ran world(options, {broadcast(0, 5000), barrier()});
    cr_assert_eq(world.total().fragments_relayed, 0);
    cr_assert_gt(world.engine(5).counters().fragments_by_multicast, 0);
}

Test(simulator_ranges, a_dead_leader_ends_the_group) {
    for (const bool relay : {false, true}) {
        Options options = split({2, 4}, relay);
        options.deaths = {{.host = 2, .after = 20}};
        expect_success(options, mixed_script(9, 6, 60, 100'000));
    }
}
