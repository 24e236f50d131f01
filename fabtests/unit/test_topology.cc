// Places, their encoding, and the clusters a map makes of them.
#include <criterion/criterion.h>

#include <random>

#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;
using mcastcoll::test::common;
using mcastcoll::test::grid;
using mcastcoll::test::place;
using mcastcoll::test::places;
using mcastcoll::test::together;

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
    cr_assert_eq(encode(all.back()).size(), kMostPlaceBytes, "the longest is tested");
}

Test(topology_place, hostile_bytes_are_refused) {
    const std::vector<std::byte> bytes = encode(place("site=A segment=s host=h1 package=1 core=3"));
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        cr_assert_not(decode_place(Bytes(bytes).first(cut)), "cut at %zu", cut);
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    cr_assert_not(decode_place(longer));
    for (const std::vector<unsigned>& wrong : {std::vector<unsigned>{2, 0},  // version
                                               {1, 1, 0, 0, 0, 0, 0},        // the wan has no coordinate
                                               {1, 1, 9, 0, 0, 0, 0},        // no such level
                                               {1, 2, 5, 0, 0, 0, 1, 4, 0, 0, 0, 1},      // inside out
                                               {1, 2, 4, 0, 0, 0, 1, 4, 0, 0, 0, 1},      // twice
                                               {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 24}}) {  // name too long
        std::vector<std::byte> raw;
        for (const unsigned byte : wrong) raw.push_back(static_cast<std::byte>(byte));
        raw.resize(raw.size() + (wrong.back() == 24 ? 24 : 0), std::byte{'x'});
        cr_assert_not(decode_place(raw));
    }
    // Whatever is taken is printable and encodes to what it was read from, but for the characters replaced.
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

Test(topology_place, tells_where_it_is) {
    cr_assert_eq(place("site=A host=h1 core=3").to_string(), "site A, host h1, core 3");
    cr_assert_eq(Place().to_string(), "nowhere in particular");
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
    // Another site's h1 is another host.
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
    cr_assert(holds(one_host.why(Level::wan), "everybody is in the same host"));
    cr_assert(holds(one_host.why(Level::core), "every core has a single member"));
    cr_assert(holds(one_host.why(Level::numa), "no member knows its numa"));

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

Test(topology_map, who_does_not_know_its_host_is_alone_but_hears_its_segment) {
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
    // Sites are the user's word, and stand.
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
