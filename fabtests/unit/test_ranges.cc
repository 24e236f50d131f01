// Aligned ranges: exact covers, the fewest ranges, and the choice between ranges, a group's own address and
// its parent's.
#include <criterion/criterion.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <set>

#include "engine/address_choice.h"
#include "engine/aligned_range.h"

using namespace mcastcoll::engine;

TestSuite(ranges, .timeout = 300);

namespace {

using Subset = std::vector<std::uint32_t>;

Subset subset_of(std::uint64_t bits) {
    Subset subset;
    for (std::uint32_t rank = 0; rank < 64; ++rank)
        if (bits >> rank & 1) subset.push_back(rank);
    return subset;
}

Subset random_subset(std::mt19937_64& random, std::uint32_t members) {
    // Runs of random lengths, so that ranges of all levels occur.
    Subset subset;
    bool inside = random() % 2;
    const std::uint64_t longest = 1 + random() % members;
    for (std::uint32_t rank = 0; rank < members;) {
        const std::uint64_t run = 1 + random() % longest;
        for (std::uint64_t i = 0; i < run && rank < members; ++i, ++rank)
            if (inside) subset.push_back(rank);
        inside = !inside;
    }
    return subset;
}

void check_exact(const Subset& subset, std::uint32_t members) {
    Subset covered;
    for (const AlignedRange& range : exact_cover(subset, members)) {
        cr_assert_lt(range.first(), range.end(members));
        for (std::uint32_t rank = range.first(); rank < range.end(members); ++rank) covered.push_back(rank);
    }
    cr_assert(covered == subset, "not exact, or not in order, for %zu of %u", subset.size(), members);
}

// Returns all blocks of a group, with their members as bits.
std::vector<std::uint64_t> all_blocks(std::uint32_t members) {
    std::set<std::uint64_t> blocks;
    for (std::uint32_t level = 0; (1U << level) < 2 * members; ++level)
        for (std::uint32_t index = 0; index << level < members; ++index) {
            const AlignedRange range{level, index};
            std::uint64_t bits = 0;
            for (std::uint32_t rank = range.first(); rank < range.end(members); ++rank)
                bits |= std::uint64_t{1} << rank;
            blocks.insert(bits);
        }
    return {blocks.begin(), blocks.end()};
}

Subset evens(std::uint32_t members) {
    Subset subset;
    for (std::uint32_t rank = 0; rank < members; rank += 2) subset.push_back(rank);
    return subset;
}

Subset run(std::uint32_t from, std::uint32_t to) {
    Subset subset(to - from);
    std::iota(subset.begin(), subset.end(), from);
    return subset;
}

AddressScheme scheme_of(const Subset& subset, std::uint32_t members) {
    return choose_scheme(subset, members, true).scheme;
}

}  // namespace

Test(ranges, a_cover_is_exact_for_every_subset_of_small_groups) {
    for (std::uint32_t members = 1; members <= 13; ++members)
        for (std::uint64_t bits = 0; bits < std::uint64_t{1} << members; ++bits)
            check_exact(subset_of(bits), members);
}

Test(ranges, a_cover_is_exact_for_random_subsets_of_large_groups) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 3000; ++i) {
        const auto members = static_cast<std::uint32_t>(1 + random() % 1000);
        check_exact(random_subset(random, members), members);
    }
}

// Brute force: the fewest blocks for every union of disjoint blocks, by dynamic programming over all subsets.
Test(ranges, no_cover_has_fewer_ranges) {
    for (std::uint32_t members = 1; members <= 11; ++members) {
        const auto blocks = all_blocks(members);
        std::vector<std::size_t> fewest(std::size_t{1} << members, SIZE_MAX);
        fewest[0] = 0;
        for (std::uint64_t bits = 1; bits < fewest.size(); ++bits)
            for (const std::uint64_t block : blocks)
                if ((block & ~bits) == 0) fewest[bits] = std::min(fewest[bits], fewest[bits & ~block] + 1);
        for (std::uint64_t bits = 0; bits < fewest.size(); ++bits)
            cr_assert_eq(exact_cover(subset_of(bits), members).size(), fewest[bits], "%llx of %u",
                         static_cast<unsigned long long>(bits), members);
    }
}

// Two subsets with a common block must name the block alike to share its address.
Test(ranges, a_block_has_one_name) {
    for (std::uint32_t members = 1; members <= 33; ++members) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
        for (const std::uint64_t block : all_blocks(members)) {
            const auto cover = exact_cover(subset_of(block), members);
            cr_assert_eq(cover.size(), 1);
            cr_assert(seen.emplace(cover[0].level, cover[0].index).second);
        }
    }
    // In a parent of six, the ranks [4, 6) are the block of level 1, index 2, and also of level 2, index 1.
    cr_assert(exact_cover(run(4, 6), 6) == (std::vector<AlignedRange>{{1, 2}}));
}

Test(ranges, known_covers) {
    cr_assert(exact_cover(run(0, 8), 8) == (std::vector<AlignedRange>{{3, 0}}));
    cr_assert(exact_cover(run(0, 4), 8) == (std::vector<AlignedRange>{{2, 0}}));
    cr_assert(exact_cover(run(1, 8), 8) == (std::vector<AlignedRange>{{0, 1}, {1, 1}, {2, 1}}));
    cr_assert(exact_cover(run(3, 7), 8) == (std::vector<AlignedRange>{{0, 3}, {1, 2}, {0, 6}}));
    cr_assert(exact_cover(Subset{}, 8).empty());
}

Test(ranges, each_scheme_has_its_place) {
    cr_assert_eq(scheme_of(run(0, 8), 8), AddressScheme::parent, "all members");
    Subset hole = run(0, 64);
    hole.erase(hole.begin() + 17);
    cr_assert_eq(scheme_of(hole, 64), AddressScheme::parent, "nearly all members");
    cr_assert_eq(scheme_of(run(0, 32), 64), AddressScheme::chained, "one half is one range");
    cr_assert_eq(scheme_of(run(8, 28), 64), AddressScheme::chained, "a few ranges");
    cr_assert_eq(scheme_of(evens(16), 16), AddressScheme::tree, "eight ranges");
    cr_assert_eq(scheme_of(evens(128), 128), AddressScheme::own, "scattered");
}

Test(ranges, without_room_there_is_only_the_parent) {
    std::mt19937_64 random(3);
    for (int i = 0; i < 200; ++i) {
        const auto members = static_cast<std::uint32_t>(1 + random() % 100);
        const Subset subset = random_subset(random, members);
        if (subset.empty()) continue;
        const AddressChoice choice = choose_scheme(subset, members, false);
        cr_assert_eq(choice.scheme, AddressScheme::parent);
        cr_assert(choice.scarce);
    }
}

Test(ranges, what_the_user_wants_goes_before_the_costs_if_it_can_be_had) {
    for (const AddressScheme scheme :
         {AddressScheme::parent, AddressScheme::chained, AddressScheme::tree, AddressScheme::own})
        cr_assert_eq(choose_scheme(run(0, 5), 8, true, scheme).scheme, scheme);
    cr_assert_eq(choose_scheme(evens(128), 128, true, AddressScheme::tree).scheme, AddressScheme::own,
                 "too many ranges");
    cr_assert_eq(choose_scheme(run(0, 5), 8, false, AddressScheme::chained).scheme, AddressScheme::parent,
                 "no room");
}

Test(ranges, costs_grow_with_what_they_count) {
    for (std::uint32_t parent = 2; parent <= 256; parent *= 2)
        for (std::uint32_t members = 1; members < parent; ++members)
            cr_assert_gt(address_costs(members, parent, 1).parent,
                         address_costs(members + 1, parent, 1).parent);
    for (std::uint32_t ranges = 1; ranges < 64; ++ranges) {
        const AddressCosts fewer = address_costs(100, 256, ranges),
                           more = address_costs(100, 256, ranges + 1);
        cr_assert_gt(more.chained, fewer.chained);
        cr_assert_geq(more.tree, fewer.tree);
        cr_assert_eq(more.own, fewer.own);
    }
}

// The choice is never more expensive than another one, and always fits into a welcome.
Test(ranges, the_cheapest_is_chosen) {
    std::mt19937_64 random(11);
    std::set<AddressScheme> seen;
    for (int i = 0; i < 5000; ++i) {
        const auto members = static_cast<std::uint32_t>(2 + random() % 255);
        const Subset subset = random_subset(random, members);
        if (subset.empty()) continue;
        const AddressChoice choice = choose_scheme(subset, members, true);
        const bool few = choice.cover.size() <= kMaxRanges;
        const AddressCosts& costs = choice.costs;
        double min = std::min(costs.parent, costs.own);
        if (few) min = std::min({min, costs.chained, costs.tree});
        const double chosen = choice.scheme == AddressScheme::parent    ? costs.parent
                              : choice.scheme == AddressScheme::own     ? costs.own
                              : choice.scheme == AddressScheme::chained ? costs.chained
                                                                        : costs.tree;
        cr_assert_eq(chosen, min);
        cr_assert(few || choice.scheme == AddressScheme::parent || choice.scheme == AddressScheme::own);
        seen.insert(choice.scheme);
    }
    cr_assert_eq(seen.size(), 4);
}
