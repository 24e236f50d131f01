// The user's overrides of the topology, networks, and which networks form a site.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "topology/discover.h"
#include "topology/site_survey.h"
#include "topology_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::topology;
using mcastcoll::test::place;

namespace {

// Parses an IPv4 address.
std::vector<std::byte> address(const std::string& text) {
    std::vector<std::byte> bytes(4);
    cr_assert_eq(::inet_pton(AF_INET, text.c_str(), bytes.data()), 1);
    return bytes;
}

Override words(const std::string& text) {
    auto result = Override::parse_words(text);
    cr_assert(result.ok(), "%s: %s", text.c_str(), result.ok() ? "" : result.error().message.c_str());
    return result.value();
}

// Checks that the words were refused, with an error message that contains all these parts.
void refused(const Result<Override>& result, const std::string& text, const std::vector<std::string>& parts) {
    cr_assert_not(result.ok(), "'%s' was taken", text.c_str());
    for (const std::string& part : parts)
        cr_assert(result.error().message.find(part) != std::string::npos, "'%s': \"%s\" lacks \"%s\"",
                  text.c_str(), result.error().message.c_str(), part.c_str());
}

}  // namespace

Test(topology_subnet, reads_writes_and_contains) {
    for (const char* text : {"10.77.0.0/24", "0.0.0.0/0", "10.1.2.3/32", "fd00::/64", "::/0", "fd00::1/128"})
        cr_assert_eq(Subnet::parse(text).value().to_string(), text);
    const Subnet subnet = Subnet::parse("10.77.4.0/22").value();
    cr_assert(subnet.contains(address("10.77.7.255")));
    cr_assert_not(subnet.contains(address("10.77.8.0")));
    cr_assert_not(subnet.contains({}));
    std::vector<std::byte> mapped(16);
    mapped[10] = mapped[11] = std::byte{0xff};
    const auto v4 = address("10.77.5.1");
    std::copy(v4.begin(), v4.end(), mapped.begin() + 12);
    cr_assert(subnet.contains(mapped), "an IPv4 address in IPv6's clothes");
    cr_assert_eq(Subnet::around(mapped, 118).to_string(), "10.77.4.0/22");
    for (const char* text : {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/0x8", "10.0.0.1/24",
                             "10.0.0", "fd00::/129", "a.b.c.d", "10.0.0.0/8/8", "10.0.0.0/99999999999"})
        cr_assert_not(Subnet::parse(text).ok(), "%s", text);
    cr_assert(Subnet::parse("10.0.0.1/24").error().message.find("10.0.0.0/24 is meant") != std::string::npos);
}

Test(topology_override, a_list_of_sites_places_processes_by_their_address) {
    Override given = words("flat");
    cr_assert_not(given.places_sites());
    given.add_site(Name("lyon"), Subnet::parse("10.1.0.0/16").value());
    given.add_site(Name("annexe"), Subnet::parse("10.1.9.0/24").value());
    cr_assert(given.places_sites() && given.policy().flat);
    cr_assert(given.name_at(Level::site, address("10.1.2.3")) == Name("lyon"));
    cr_assert(given.name_at(Level::site, address("10.1.9.3")) == Name("annexe"));
    cr_assert(given.name_at(Level::site, address("10.2.0.1")).empty());
    cr_assert(words("site=X:10.0.0.0/8").places_sites());
    cr_assert_not(words("segment=X:10.0.0.0/8").places_sites());
}

Test(topology_override, overrides_are_understood) {
    cr_assert(words("").policy() == Policy{});
    cr_assert(words(" auto ").policy() == Policy{});
    cr_assert(words("flat").policy().flat);
    const Policy policy = words("-site, -numa,binomial@wan,8-ary@segment,shm@host").policy();
    cr_assert(policy.off.has(Level::site) && policy.off.has(Level::numa) && !policy.off.has(Level::host));
    cr_assert_eq(policy.algorithms.at(Level::wan).name(), "binomial");
    cr_assert_eq(policy.algorithms.at(Level::segment).name(), "8-ary");
    cr_assert_eq(policy.algorithms.at(Level::core).name(), "shm");

    const Override sites = words("site=A:10.1.0.0/16,B:10.2.0.0/16,A:10.1.7.0/24,B:10.1.7.7,-host,segment=s");
    cr_assert_eq(sites.name_at(Level::site, address("10.1.9.9")).view(), "A");
    cr_assert_eq(sites.name_at(Level::site, address("10.2.9.9")).view(), "B");
    cr_assert_eq(sites.name_at(Level::site, address("10.1.7.7")).view(), "B", "the longest prefix");
    cr_assert(sites.name_at(Level::site, address("10.3.0.1")).empty());
    cr_assert_eq(sites.name_at(Level::segment, address("10.3.0.1")).view(), "s");
    cr_assert(sites.policy().off.has(Level::host));
    cr_assert(words("site=A:fd00::/64,B:fd01::/64").policy() == Policy{}, "colons within an address");
}

Test(topology_override, is_put_into_a_place) {
    Place one = place("site=x segment=y host=h package=1");
    const std::uint64_t real = one.at(Level::host)->id;
    words("site=A,segment=S").apply(one, {});
    cr_assert_eq(one.to_string(), "site A, segment S, host h, package 1");
    cr_assert_eq(one.at(Level::host)->id, real);
    // A named host is a part of the real host, so two real hosts never become one.
    Place other = place("host=g");
    words("host=n").apply(one, {});
    words("host=n").apply(other, {});
    cr_assert_eq(one.at(Level::host)->name.view(), "n");
    cr_assert_neq(one.at(Level::host)->id, real);
    cr_assert_neq(one.at(Level::host)->id, other.at(Level::host)->id);
    Place unknown;
    words("host=n").apply(unknown, {});
    cr_assert_not(unknown.at(Level::host).has_value());
}

Test(topology_override, complaints_say_where_and_what_is_allowed) {
    const auto bad = [](const std::string& text, const std::vector<std::string>& parts) {
        refused(Override::parse_words(text), text, parts);
    };
    bad("hots", {"character 1", "\"hots\"", "auto, flat"});
    bad("flat,,auto", {"character 6", "\"\""});
    bad("auto,-hots", {"character 7", "\"hots\"", "site, segment, host, package, numa, l3, l2, core"});
    bad("-wan", {"character 2", "\"wan\""});
    bad("flat@hosts", {"character 6", "\"hosts\"", "wan, site"});
    bad("auto, fast@site", {"character 7", "\"fast\"", "flat, chain, binomial, K-ary (K from 2 to 64)"});
    bad("multicast@host", {"character 1", "allowed are shm"});
    bad("chain@package", {"character 1", "allowed are shm"});
    for (const char* word : {"binomial@segment", "flat@segment", "9-ary@segment"})
        bad(word, {"character 1", "allowed are chain, K-ary (K from 2 to 8), multicast"});
    bad("65-ary@site", {"character 1", "allowed are flat, chain, binomial, K-ary (K from 2 to 64)"});
    bad("shm@wan", {"character 1", "flat, chain"});
    bad("rack=1", {"character 1", "\"rack\"", "site=, segment= and host="});
    bad("site=", {"character 6", "name of a site"});
    bad("site=a b", {"character 6", "\"a b\""});
    bad("site=aaaaaaaaaaaaaaaaaaaaaaaa", {"character 6", "1 to 23"});
    bad("site=A:10.0.0.0/8,B:10.1/16", {"character 21", "\"10.1/16\"", "is not a subnet"});
    bad("site=A:10.0.0.0/8,B:10.0.0.0/8", {"character 21", "in site A already"});
    bad("A:10.0.0.0/8", {"character 1"});
    bad("site=A,B:10.0.0.0/8", {"character 8"});
}

Test(topology_override, files_are_understood) {
    const auto file = Override::parse_file(
        "# two sites\n"
        "site A 10.77.0.0/24 fd00::/64   # the old one\r\n"
        "\n"
        "  site B 10.78.0.0/24\n"
        "level numa off\nlevel l3 off\nlevel l3 on\n"
        "algorithm wan chain",
        "t");
    cr_assert(file.ok(), "%s", file.ok() ? "" : file.error().message.c_str());
    cr_assert_eq(file.value().name_at(Level::site, address("10.78.0.9")).view(), "B");
    cr_assert(file.value().policy().off.has(Level::numa) && !file.value().policy().off.has(Level::l3));
    cr_assert_eq(file.value().policy().algorithms.at(Level::wan).name(), "chain");
    const auto bad = [](const std::string& text, const std::vector<std::string>& parts) {
        refused(Override::parse_file(text, "sites.conf"), text, parts);
    };
    bad("site A\nlevel numa of\n", {"sites.conf line 2, character 12", "\"of\"", "on and off"});
    bad("\n\nsites A 10.0.0.0/8", {"line 3, character 1", "\"sites\"", "site, segment or host"});
    bad("site A 10.0.0.0/8 10.1.1.1/8", {"line 1, character 19", "beyond its prefix"});
    bad("site", {"line 1, character 1", "needs a name"});
    bad("level numa", {"level LEVEL on|off"});
    bad("flat now", {"character 6"});
    bad("algorithm site fast", {"character 16", "allowed are flat"});
}

Test(topology_override, is_a_file_when_it_looks_like_one) {
    char path[] = "/tmp/mcastcoll-topology-XXXXXX";
    const int descriptor = ::mkstemp(path);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(::write(descriptor, "level host off\n", 15), 15);
    ::close(descriptor);
    for (const std::string prefix : {"", "file:"}) {
        const auto read = read_override(prefix + path);
        cr_assert(read.ok() && read.value().policy().off.has(Level::host));
    }
    ::unlink(path);
    refused(read_override(path), path, {path, "No such file"});
    refused(read_override("./no/such"), "./no/such", {"./no/such"});
    cr_assert(read_override("flat").value().policy().flat);
}

Test(topology_override, random_text_is_taken_or_refused) {
    std::mt19937 random(5);
    const std::string letters = "aA1.:/,=@-# \n\t%site hostflatlevelofchain";
    for (int turn = 0; turn < 100000; ++turn) {
        std::string text;
        for (auto left = random() % 24; left > 0; --left) text += letters[random() % letters.size()];
        for (const auto& result : {Override::parse_words(text), Override::parse_file(text, "f")})
            if (!result) cr_assert_not(result.error().message.empty());
    }
}

Test(topology_sites, near_networks_are_one_site) {
    const auto us = [](std::int64_t n) { return Nanoseconds::from_us(n); };
    using Sites = std::vector<std::uint32_t>;
    cr_assert(merge_sites(3, {}) == (Sites{0, 1, 2}), "nothing is known");
    // Two racks and a distant network.
    const std::vector<RoundTrip> racks{{0, 1, us(120)}, {0, 2, us(20000)}, {2, 1, us(21000)}};
    cr_assert(merge_sites(3, racks) == (Sites{0, 0, 1}));
    // A campus 3 ms wide, the next continent 90 ms away.
    const std::vector<RoundTrip> campus{
        {0, 1, us(3000)}, {0, 2, us(90000)}, {1, 2, us(91000)}, {2, 3, us(40)}};
    cr_assert(merge_sites(4, campus) == (Sites{0, 0, 1, 1}));
    // Without a more distant network, 3 ms separate two sites.
    const std::vector<RoundTrip> two{{0, 1, us(3000)}, {2, 3, us(40)}};
    cr_assert(merge_sites(4, two) == (Sites{0, 1, 2, 2}));
    // Networks more than 10 ms apart are separate sites, even if the others are more than ten times as far
    // away.
    const std::vector<RoundTrip> far{{0, 1, us(40000)}, {0, 2, us(900000)}};
    cr_assert(merge_sites(3, far) == (Sites{0, 1, 2}));
    // Nearness is transitive, whatever the order.
    const std::vector<RoundTrip> row{
        {3, 4, us(900)}, {1, 2, us(900)}, {2, 3, us(900)}, {0, 4, us(50000)}, {1, 4, us(2500)}};
    cr_assert(merge_sites(5, row) == (Sites{0, 1, 1, 1, 1}));
    // A network with two sites: its hosts are distinguished.
    const std::vector<RoundTrip> split{
        {0, 1, us(50)}, {2, 3, us(50)}, {0, 2, us(8000)}, {1, 3, us(8100)}, {9, 0, us(1)}};
    cr_assert(merge_sites(4, split) == (Sites{0, 0, 1, 1}));
}

// Networks 1 and 2 are near each other, 3 is far from both; a member with a site set by the user keeps it.
Test(topology_sites, a_survey_makes_sites_of_networks) {
    std::vector<Place> places =
        test::places({"site=north segment=north host=a", "site=south segment=south host=b",
                      "site=north segment=north host=c", "site=mine segment=other host=d", "host=e",
                      "site=far segment=far host=f"});
    SiteSurvey survey(places);
    cr_assert_eq(survey.networks(), 3U);
    cr_assert_eq(index_of(survey.representative(2)), 5U);
    const Map before(places, Policy{});
    cr_assert_eq(before.clusters(Level::site), 5U);
    survey.learn(0, 1, Nanoseconds::from_us(300));
    survey.learn(2, 0, Nanoseconds::from_ms(5));
    survey.learn(1, 2, SiteSurvey::kFar);
    survey.learn(1, 2, Nanoseconds::from_us(1));  // the first measurement counts
    cr_assert(survey.knows(0, 2) && survey.knows(1, 0));
    const auto lines = survey.explain();
    cr_assert_str_eq(lines[0].c_str(), "north and south: 300 us, one site");
    cr_assert_str_eq(lines[2].c_str(), "south and far: no answer, two sites");
    survey.apply(places);
    const Map after(places, Policy{});
    cr_assert(test::together(after, rank_of(0), rank_of(1), Level::site));
    cr_assert_not(test::together(after, rank_of(0), rank_of(1), Level::segment));
    cr_assert_not(test::together(after, rank_of(0), rank_of(5), Level::site));
    cr_assert_not(test::together(after, rank_of(0), rank_of(3), Level::site));
    cr_assert(after.title(Level::site, after.cluster(rank_of(1), Level::site)) == "north");
}
