// The multilevel tree: whatever the places, root and algorithms, it has the properties its users rely on.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include <random>
#include <string_view>

#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;
using namespace mcastcoll::test;
using namespace std::string_view_literals;

namespace {

// Every member once, one edge into each cluster that the root is not in, children and parents agree.
void check_tree(const Map& map, const Tree& tree) {
    std::size_t edges = 0;
    for (std::size_t i = 0; i < map.members(); ++i) {
        const Rank rank = rank_of(i);
        const Rank parent = tree.parent(rank);
        cr_assert_eq(parent == kNoRank, rank == tree.root());
        cr_assert_lt(distance(tree, rank), map.members(), "a ring");
        if (parent != kNoRank)
            cr_assert(tree.level(rank) == std::min(common(map, rank, parent), Level::host));
        Level last = Level::wan;
        for (const Rank child : tree.children(rank)) {
            ++edges;
            cr_assert_eq(tree.parent(child), rank);
            cr_assert(tree.level(child) >= last, "the farthest is served first");
            last = tree.level(child);
        }
    }
    cr_assert_eq(edges, map.members() - 1);
    for (const Level level : {Level::wan, Level::site, Level::segment, Level::host}) {
        std::vector<unsigned> entered(map.clusters(level));
        for (std::size_t r = 0; r < map.members(); ++r) {
            const Rank parent = tree.parent(rank_of(r));
            if (parent != kNoRank && !together(map, rank_of(r), parent, level))
                ++entered[map.cluster(rank_of(r), level)];
        }
        for (std::uint32_t c = 0; c < entered.size(); ++c)
            cr_assert_eq(entered[c], map.cluster(tree.root(), level) == c ? 0u : 1u);
    }
}

}  // namespace

Test(topology_tree, holds_for_any_root_algorithm_and_ragged_places) {
    std::mt19937 random(11);
    for (int turn = 0; turn < 400; ++turn) {
        std::vector<Place> all(random() % 40 + 1);
        for (Place& one : all)
            for (std::size_t i = 1; i < kLevels; ++i)
                if (random() % 4 != 0) one.set(level_of(i), random() % 3);
        Policy policy;
        policy.flat = random() % 10 == 0;
        for (std::size_t i = 1; i < kLevels; ++i)
            if (random() % 6 == 0) policy.off.add(level_of(i));
        for (std::size_t i = 0; i < kLevels; ++i)
            for (;;) {
                const auto algorithm = algorithm_of(static_cast<std::uint8_t>(random() % 6),
                                                    static_cast<std::uint8_t>(random() % 2 * 3));
                if (!algorithm || !algorithm->allowed_at(level_of(i))) continue;
                policy.algorithms.set(level_of(i), *algorithm);
                break;
            }
        const auto code = encode(policy);
        cr_assert(decode_policy(code) == policy);
        const Map map(all, policy);
        for (std::size_t root = 0; root < all.size(); ++root) check_tree(map, make_tree(map, rank_of(root)));
    }
}

Test(topology_tree, shapes_are_what_their_names_say) {
    const auto tree_of = [](const char* level, const char* name, std::size_t root) {
        std::vector<std::string> words;
        for (int i = 0; i < 8; ++i) words.push_back(fmt::format("site={}", level == "wan"sv ? i : 0));
        Policy policy;
        policy.algorithms.set(*level_named(level), *algorithm_named(name));
        return make_tree(Map(places(words), policy), rank_of(root));
    };
    const auto children = [](const Tree& tree, std::size_t rank) {
        std::vector<std::uint32_t> result;
        for (const Rank child : tree.children(rank_of(rank))) result.push_back(index_of(child));
        return result;
    };
    using Ranks = std::vector<std::uint32_t>;
    cr_assert(children(tree_of("wan", "flat", 2), 2) == (Ranks{0, 1, 3, 4, 5, 6, 7}));
    cr_assert(children(tree_of("segment", "multicast", 2), 2) == (Ranks{3, 4, 5, 6, 7, 0, 1}), "a ring");
    cr_assert(children(tree_of("segment", "chain", 6), 7) == Ranks{0});
    cr_assert(children(tree_of("segment", "chain", 6), 5).empty());
    cr_assert(children(tree_of("wan", "chain", 6), 6) == Ranks{0});
    cr_assert(children(tree_of("wan", "chain", 6), 5) == Ranks{7});
    cr_assert(children(tree_of("wan", "binomial", 0), 0) == (Ranks{1, 2, 4}));
    cr_assert(children(tree_of("wan", "binomial", 0), 4) == (Ranks{5, 6}));
    cr_assert(children(tree_of("segment", "2-ary", 0), 1) == (Ranks{3, 4}));
    for (const char* name :
         {"", "ary", "-ary", "1-ary", "65-ary", "100-ary", "02-ary", "K-ary", "tree", "Flat"})
        cr_assert_not(algorithm_named(name), "%s", name);
    cr_assert_eq(algorithm_named("64-ary")->name(), "64-ary");
}

Test(topology_tree, a_slow_link_is_crossed_once_per_site) {
    const std::vector<Place> all = grid({.sites = 3, .hosts = 4, .packages = 2, .cores = 8});
    const Map map(all, {});
    for (const std::size_t root : {0UL, 63UL, 64UL, 100UL, 191UL}) {
        const Tree tree = make_tree(map, rank_of(root));
        std::array<unsigned, kLevels> edges{};
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i != root) ++edges[index_of(tree.level(rank_of(i)))];
        cr_assert_eq(edges[index_of(Level::wan)], 2);
        cr_assert_eq(edges[index_of(Level::segment)], 9);
        cr_assert_eq(edges[index_of(Level::host)], 180);
        check_tree(map, tree);
    }
}

Test(topology_tree, many_members) {
    const std::vector<Place> all = grid({.sites = 4, .hosts = 64, .packages = 2, .cores = 128});
    const Map map(all, {});
    cr_assert_eq(map.members(), 65536);
    const Tree tree = make_tree(map, rank_of(40000));
    std::size_t farthest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) farthest = std::max(farthest, distance(tree, rank_of(i)));
    cr_assert_eq(farthest, 3, "site, host, process: one step each");
}

Test(topology_policy, hostile_bytes_are_refused) {
    const auto good = encode(Policy{});
    cr_assert(decode_policy(good).has_value());
    cr_assert_not(decode_policy(Bytes(good).first(kPolicyBytes - 1)));
    for (const auto& [at, value] :
         {std::pair{0, 2}, {1, 2}, {2, 0xff}, {3, 1}, {4, 4}, {4, 6}, {4, 3}, {5, 1}}) {
        auto bad = good;
        bad[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        cr_assert_not(decode_policy(bad), "byte %d is %d", at, value);
    }
}
