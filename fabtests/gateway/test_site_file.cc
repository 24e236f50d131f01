// The sites file and the preface: accepted contents, and errors with line numbers.
#include <criterion/criterion.h>
#include <sys/socket.h>

#include <cstring>

#include "gateway/preface.h"
#include "sites/sites.h"

using namespace mcastcoll;
using namespace mcastcoll::gateway;
using namespace mcastcoll::sites;

namespace {

const char* const kGood =
    "# two sites\n"
    "[site lyon]\n"
    "networks = 10.1.0.0/16, fd00:1::/64\n"
    "gateway = 10.1.0.1:7400 ; where processes connect to\n"
    "wan = 192.0.2.1:7401\n"
    "\n"
    "[site rennes]\r\n"
    "networks = 10.0.0.0/8\r\n"
    "gateway = [fd00:2::1]:7400\r\n"
    "[sessions]\n"
    "streams = 5\n"
    "congestion = bbr\n"
    "cap = 250\n"
    "key = session.key\n";

Endpoint endpoint(const char* text) {
    auto parsed = Endpoint::parse(text);
    cr_assert(parsed.ok(), "%s", text);
    return parsed.value();
}

void expect_error(const std::string& text, const std::string& expected) {
    const auto parsed = parse_sites(text, "sites.conf");
    cr_assert_not(parsed.ok(), "taken: %s", text.c_str());
    cr_assert_eq(parsed.error().code, EINVAL);
    cr_assert(parsed.error().message.starts_with(expected), "\"%s\" gives \"%s\" instead of \"%s...\"",
              text.c_str(), parsed.error().message.c_str(), expected.c_str());
}

}  // namespace

Test(site_file, reads_all_settings) {
    const auto parsed = parse_sites(kGood, "sites.conf");
    cr_assert(parsed.ok(), "%s", parsed.ok() ? "" : parsed.error().message.c_str());
    const Sites& sites = parsed.value();
    cr_assert_eq(sites.sites.size(), 2U);
    cr_assert(sites.sites[0].wan == endpoint("192.0.2.1:7401"));
    cr_assert(sites.sites[1].wan == endpoint("[fd00:2::1]:7400"));
    cr_assert_eq(sites.sessions.streams, 5U);
    cr_assert_eq(sites.sessions.cap_mbit, 250U);
    cr_assert(sites.sessions.congestion == "bbr" && sites.sessions.key_file == "session.key");
    cr_assert_eq(sites.site_of(endpoint("10.1.2.3")), &sites.sites[0], "the longer prefix wins");
    cr_assert_eq(sites.site_of(endpoint("10.2.2.3:5")), &sites.sites[1]);
    cr_assert_eq(sites.site_of(endpoint("::ffff:10.2.2.3")), &sites.sites[1]);
    cr_assert_eq(sites.site_of(endpoint("fd00:1::77")), &sites.sites[0]);
    cr_assert_null(sites.site_of(endpoint("fd00:1:0:1::77")));
    cr_assert_null(sites.site_of(Endpoint{}));
}

Test(site_file, names_the_line_of_an_error) {
    expect_error("", "sites.conf:0: no [site NAME]");
    expect_error("[site a]\nnetworks = 10.0.0.0/8\n", "sites.conf:1: site \"a\" has no gateway");
    expect_error("\n[site a]\ngateway = 10.0.0.1:1\n[sessions]\n",
                 "sites.conf:2: site \"a\" has no networks");
    expect_error("streams = 3\n", "sites.conf:1: \"streams\" must follow");
    expect_error("[sessions]\nstreams = 33\n", "sites.conf:2: streams = 33: allowed are");
    expect_error("[sessions]\nstreams = 1x\n", "sites.conf:2: streams = 1x");
    expect_error("[sessions]\nstreams = 1\nstreams = 1\n", "sites.conf:3: \"streams\" appears twice");
    expect_error("[sessions]\n[sessions]\n", "sites.conf:2: [sessions] appears twice");
    expect_error("[sessions]\ncap = -1\n", "sites.conf:2: cap = -1");
    expect_error("[sessions]\ncolour = red\n", "sites.conf:2: [sessions] has no setting \"colour\"");
    expect_error("[site a b]\n", "sites.conf:1: \"a b\" is not the name");
    expect_error("[site a\n", "sites.conf:1: \"[site a\" lacks");
    expect_error("[house]\n", "sites.conf:1: \"[house]\" is neither");
    expect_error("[site a]\nnetworks 10.0.0.0/8\n", "sites.conf:2: \"networks 10.0.0.0/8\" is neither");
    expect_error("[site a]\nnetworks =\n", "sites.conf:2: \"networks\" has no value");
    expect_error("[site a]\nnetworks = 10.0.0.0/33\n",
                 "sites.conf:2: \"10.0.0.0/33\" needs a number of bits");
    expect_error("[site a]\nnetworks = 10.0.0.1/8\n",
                 "sites.conf:2: \"10.0.0.1/8\" has bits beyond its prefix");
    expect_error("[site a]\nnetworks = 10.0.0.0/8,\n", "sites.conf:2: \"\" is not a subnet");
    expect_error("[site a]\ngateway = 10.0.0.1\n", "sites.conf:2: \"10.0.0.1\" has no port");
    expect_error("[site a]\ngateway = there:80\n", "sites.conf:2: \"there:80\" is not an IPv4");
    expect_error("[site a]\ngateway = 10.0.0.1:99999\n",
                 "sites.conf:2: \"10.0.0.1:99999\" has no port number");
    const std::string site = "[site a]\nnetworks = 10.0.0.0/8\ngateway = 10.0.0.1:1\n";
    expect_error(site + "[site a]\n", "sites.conf:4: site \"a\" appears twice");
    expect_error(site + "[site b]\nnetworks = 10.0.0.0/8\n", "sites.conf:5: 10.0.0.0/8 is already a network");
    expect_error(site + "[site b]\nnetworks = 11.0.0.0/8\ngateway = 10.0.0.1:1\n",
                 "sites.conf:4: site \"b\" has the same gateway");
}

Test(site_file, a_site_reaches_its_allowed_targets) {
    const std::string site = "[site a]\nnetworks = 10.0.0.0/8\ngateway = 10.0.0.1:1\n";
    const auto may = [&](const std::string& line, const char* target) {
        const auto parsed = parse_sites(site + line, "sites.conf");
        cr_assert(parsed.ok(), "%s", parsed.ok() ? "" : parsed.error().message.c_str());
        return parsed.value().sites[0].may_reach(endpoint(target));
    };
    for (const char* service : {"11.0.0.1:22", "11.0.0.1:2049", "11.0.0.1:32767", "[fd00::9]:443"})
        cr_assert_not(may("", service), "%s", service);
    for (const char* process : {"11.0.0.1:32768", "11.0.0.1:65535", "[fd00::9]:40000"})
        cr_assert(may("", process), "%s", process);
    cr_assert_not(may("reach = none\n", "11.0.0.1:80"));
    const char* const some =
        "reach = 11.0.0.0/16, 12.0.0.0/8:5000-5999, 12.0.0.7:22, fd00::/64, [fd01::/64]:7400\n";
    for (const char* good : {"11.0.255.1:1", "11.0.0.1:65535", "12.3.0.1:5000", "12.3.0.1:5999",
                             "12.0.0.7:22", "[fd00::9]:80", "[fd01::9]:7400", "[::ffff:11.0.0.1]:80"})
        cr_assert(may(some, good), "%s", good);
    for (const char* bad : {"11.1.0.1:1", "12.3.0.1:4999", "12.3.0.1:6000", "12.0.0.8:22", "13.0.0.1:5000",
                            "[fd00:0:0:1::9]:80", "[fd01::9]:7401"})
        cr_assert_not(may(some, bad), "%s", bad);
    expect_error(site + "reach = there:80\n", "sites.conf:4: reach: \"there\" is not a subnet");
    expect_error(site + "reach = 11.0.0.0/8,\n", "sites.conf:4: reach: \"\" is not a subnet");
    expect_error(site + "reach = 11.0.0.0/8, none\n", "sites.conf:4: reach: \"none\" is not a subnet");
    for (const char* bad : {"11.0.0.0/8:0", "11.0.0.0/8:65536", "11.0.0.0/8:", "11.0.0.0/8:9-8",
                            "11.0.0.0/8:1-", "11.0.0.0/8:1-2-3", "[fd00::/64]:x"})
        expect_error(site + "reach = " + bad + "\n",
                     "sites.conf:4: reach: \"" + std::string(bad) + "\" has no port");
    expect_error(site + "reach = [fd00::/64\n", "sites.conf:4: reach: \"[fd00::/64\" lacks");
    expect_error(site + "reach = [fd00::/64]80\n", "sites.conf:4: reach: \"[fd00::/64]80\" has something");
    expect_error(site + "reach = none\nreach = none\n", "sites.conf:5: \"reach\" appears twice");
}

Test(site_file, reports_unreadable_files) {
    cr_assert_eq(read_sites("/nonexistent/sites.conf").error().code, ENOENT);
    cr_assert_eq(read_sites("/").error().code, EISDIR);
    cr_assert_eq(read_sites("/dev/zero").error().code, EFBIG);
}

Test(preface, travels_in_64_bytes) {
    const Preface preface{endpoint("10.1.0.7:40000"), endpoint("[fd00:2::9]:5001"), 7, 12345};
    auto bytes = encode_preface(preface);
    cr_assert_eq(bytes.size(), 64U);
    cr_assert_eq(std::memcmp(bytes.data(), "MCCR\0\1\0\0\0\4", 10), 0);
    cr_assert(decode_preface(bytes) == preface);
    cr_assert_not(decode_preface(std::span(bytes).first(63)).has_value());
    for (const std::size_t damaged : {0U, 4U, 8U, 28U, 60U}) {
        auto copy = bytes;
        copy[damaged] ^= std::byte{0x80};
        cr_assert_not(decode_preface(copy).has_value(), "byte %zu", damaged);
    }
}

Test(preface, addresses_come_back_from_the_kernel_s_form) {
    for (const char* text : {"10.1.0.7:40000", "[fd00:2::9]:5001"}) {
        sockaddr_storage storage;
        const std::size_t size = endpoint(text).to(storage);
        cr_assert(Endpoint::of(reinterpret_cast<const sockaddr*>(&storage), size) == endpoint(text));
        cr_assert_eq(endpoint(text).to_string(), text);
        cr_assert_not(Endpoint::of(reinterpret_cast<const sockaddr*>(&storage), size - 1).valid());
    }
}
