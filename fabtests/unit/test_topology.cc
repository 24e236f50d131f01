// Places, their encoding, and the clusters of a map; the multilevel tree, with properties that must hold for
// all places, roots and algorithms.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include <random>

#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;
using namespace mcastcoll::test;
using namespace std::string_view_literals;

namespace {

std::vector<unsigned> numbers(std::span<const Rank> ranks) {
    std::vector<unsigned> result;
    for (const Rank rank : ranks) result.push_back(index_of(rank));
    return result;
}

std::vector<Level> levels_of(const Map& map) {
    return {map.levels().begin(), map.levels().end()};
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Every member occurs once, one edge leads into each cluster without the root, children and parents agree.
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

Test(topology_place, survives_its_encoding) {
    const std::vector<Place> all =
        places({"", "site=A", "host=h1", "core=4294967295",
                "site=aaaaaaaaaaaaaaaaaaaaaaaa segment=bbbbbbbbbbbbbbbbbbbbbbbbbbb "
                "host=cccccccccccccccccccccccccccc "
                "package=1 numa=2 l3=3 l2=4 core=5"});
    for (const Place& one : all) {
        const std::vector<std::byte> code = encode(one);
        cr_assert_leq(code.size(), 128);
        const auto back = decode_place(code);
        cr_assert(back.has_value());
        cr_assert(*back == one, "%s became %s", one.to_string().c_str(), back->to_string().c_str());
    }
    cr_assert_eq(encode(all.back()).size(), kMaxPlaceBytes, "the longest is tested");
}

Test(topology_place, hostile_bytes_are_refused) {
    const std::vector<std::byte> bytes = encode(place("site=A segment=s host=h1 package=1 core=3"));
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        cr_assert_not(decode_place(Bytes(bytes).first(cut)), "cut at %zu", cut);
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    cr_assert_not(decode_place(longer));
    for (const std::vector<unsigned>& wrong : {std::vector<unsigned>{2, 0},  // version
                                               {1, 1, 0, 0, 0, 0, 0},        // level wan has no coordinate
                                               {1, 1, 9, 0, 0, 0, 0},        // no such level
                                               // Levels in the wrong order.
                                               {1, 2, 5, 0, 0, 0, 1, 4, 0, 0, 0, 1},
                                               {1, 2, 4, 0, 0, 0, 1, 4, 0, 0, 0, 1},  // the same level twice
                                               {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 24}}) {  // name too long
        std::vector<std::byte> raw;
        for (const unsigned byte : wrong) raw.push_back(static_cast<std::byte>(byte));
        raw.resize(raw.size() + (wrong.back() == 24 ? 24 : 0), std::byte{'x'});
        cr_assert_not(decode_place(raw));
    }
    // Every accepted encoding is printable and encodes to its original, except for replaced characters.
    std::mt19937 random(7);
    unsigned taken = 0;
    for (int turn = 0; turn < 200000; ++turn) {
        std::vector<std::byte> spoilt = bytes;
        for (auto hits = random() % 3 + 1; hits > 0; --hits)
            spoilt[random() % spoilt.size()] = static_cast<std::byte>(random());
        const auto decoded = decode_place(spoilt);
        if (!decoded) continue;
        ++taken;
        cr_assert_eq(encode(*decoded).size(), spoilt.size());
        for (const char c : decoded->to_string()) cr_assert(c >= ' ' && c <= '~');
    }
    cr_assert_gt(taken, 1000);
}

Test(topology_place, names_its_place) {
    cr_assert_eq(place("site=A host=h1 core=3").to_string(), "site A, host h1, core 3");
    cr_assert_eq(Place().to_string(), "an unknown place");
    cr_assert_eq(Name("abcdefghijklmnopqrstuvwxyz").view(), "abcdefghijklmnopqrstu..");
    cr_assert_eq(Name("a\nb\x80").view(), "a?b?");
}

Test(topology_map, clusters_nest_and_are_numbered_by_first_rank) {
    const Map map(places({"site=B host=h1 core=0", "site=A host=h1 core=0", "site=B host=h2 core=0",
                          "site=B host=h1 core=1"}),
                  {});
    cr_assert_eq(map.clusters(Level::site), 2);
    cr_assert_eq(map.cluster(rank_of(0), Level::site), 0);
    cr_assert_eq(map.cluster(rank_of(1), Level::site), 1);
    // h1 of another site is another host.
    cr_assert_eq(map.clusters(Level::host), 3);
    cr_assert(numbers(map.members_of(Level::host, 0)) == (std::vector<unsigned>{0, 3}));
    cr_assert(numbers(map.members_of(Level::site, 0)) == (std::vector<unsigned>{0, 2, 3}));
    cr_assert(map.members_of(Level::site, 2).empty());
    cr_assert_eq(map.leader(Level::host, 0), rank_of(0));
    cr_assert_eq(map.leader(Level::host, 0, rank_of(3)), rank_of(3));
    cr_assert_eq(map.leader(Level::host, 0, rank_of(2)), rank_of(0));
    cr_assert(numbers(map.connected_by(Level::site, 0)) == (std::vector<unsigned>{0, 2}));
    cr_assert(numbers(map.connected_by(Level::site, 0, rank_of(3))) == (std::vector<unsigned>{3, 2}));
    cr_assert(common(map, rank_of(0), rank_of(3)) == Level::host);
    cr_assert(common(map, rank_of(0), rank_of(2)) == Level::segment);
    cr_assert(common(map, rank_of(0), rank_of(1)) == Level::wan);
}

Test(topology_map, levels_that_divide_nothing_are_explained) {
    const Map one_host(grid({.cores = 4}), {});
    cr_assert(levels_of(one_host) == std::vector<Level>{Level::host});
    cr_assert(holds(one_host.why(Level::wan), "all members are in the same host"));
    cr_assert(holds(one_host.why(Level::core), "every core has a single member"));
    cr_assert(holds(one_host.why(Level::numa), "no member has a known numa"));

    const Map hosts(grid({.hosts = 8}), {});
    cr_assert(levels_of(hosts) == std::vector<Level>{Level::segment});
    cr_assert_eq(hosts.why(Level::segment), "connects 8 hosts in 1 segment");
    cr_assert(holds(hosts.why(Level::host), "every host has a single member"));

    const Map sites(grid({.sites = 2, .hosts = 2, .packages = 2, .cores = 2}), {});
    cr_assert_eq(sites.why(Level::wan), "connects 2 sites");
    cr_assert(holds(sites.why(Level::site), "divides as the segment does"));
    cr_assert_eq(sites.why(Level::host), "connects 16 processes in 4 hosts");

    const Map alone(places({"host=h1"}), {});
    cr_assert(alone.levels().empty());
    cr_assert(holds(alone.why(Level::host), "only one member"));
}

Test(topology_map, an_unbound_process_hangs_directly_below_its_host) {
    const Map map(places({"host=h core=0 package=0", "host=h core=1 package=0", "host=h", "host=h",
                          "host=h core=0 package=1"}),
                  {});
    cr_assert_eq(map.clusters(Level::host), 1);
    cr_assert_eq(map.clusters(Level::package), 4);
    cr_assert(common(map, rank_of(2), rank_of(3)) == Level::host);
    cr_assert(common(map, rank_of(0), rank_of(1)) == Level::package);
}

Test(topology_map, a_member_without_a_host_is_alone_but_receives_in_its_segment) {
    const Map map(places({"", "", "segment=s", "host=h", "host=h"}), {});
    cr_assert_eq(map.clusters(Level::host), 4);
    cr_assert_eq(map.clusters(Level::segment), 2);
    cr_assert(together(map, rank_of(0), rank_of(3), Level::segment));
}

Test(topology_map, a_host_is_in_one_segment) {
    const Map map(places({"segment=a host=h", "segment=b host=h", "segment=b host=g"}), {});
    cr_assert_eq(map.clusters(Level::host), 2);
    cr_assert(together(map, rank_of(0), rank_of(1), Level::segment));
    cr_assert_not(together(map, rank_of(1), rank_of(2), Level::segment));
    // Sites are set by the user, and stay as they are.
    const Map sites(places({"site=a segment=s host=h", "site=b segment=s host=h"}), {});
    cr_assert_eq(sites.clusters(Level::host), 2);
}

Test(topology_map, levels_can_be_left_out) {
    const std::vector<Place> all = grid({.sites = 2, .hosts = 2, .packages = 2, .cores = 2});
    Policy flat;
    flat.flat = true;
    const Map one(all, flat);
    cr_assert(levels_of(one) == std::vector<Level>{Level::segment});
    cr_assert_eq(one.why(Level::segment), "connects 16 processes in 1 segment");
    cr_assert_eq(one.clusters(Level::host), 16);
    cr_assert_eq(one.why(Level::site), "left out: flat");

    Policy no_host;
    no_host.off.add(Level::host);
    const Map two(all, no_host);
    cr_assert(levels_of(two) == (std::vector<Level>{Level::wan, Level::segment}));
    cr_assert_eq(two.clusters(Level::host), 16);
    cr_assert_eq(two.why(Level::core), "left out with the host");

    Policy no_segment;
    no_segment.off.add(Level::segment);
    const Map three(all, no_segment);
    cr_assert_eq(three.clusters(Level::segment), 4, "each host is one of its own");
    cr_assert(levels_of(three)[1] == Level::site);

    Policy no_site;
    no_site.off.add(Level::site);
    const Map four(all, no_site);
    cr_assert_eq(four.clusters(Level::site), 1);
    cr_assert_eq(four.clusters(Level::segment), 2);
}

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
        for (std::size_t root = 0; root < all.size(); ++root) check_tree(map, Tree(map, rank_of(root)));
    }
}

Test(topology_tree, shapes_are_what_their_names_say) {
    const auto tree_of = [](const char* level, const char* name, std::size_t root) {
        std::vector<std::string> words;
        for (int i = 0; i < 8; ++i) words.push_back(fmt::format("site={}", level == "wan"sv ? i : 0));
        Policy policy;
        policy.algorithms.set(*level_named(level), *algorithm_named(name));
        return Tree(Map(places(words), policy), rank_of(root));
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
        const Tree tree(map, rank_of(root));
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
    const Tree tree(map, rank_of(40000));
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
