// Socket addresses, interfaces, group addresses: the pure and nearly pure part of the transports.
#include <criterion/criterion.h>
#include <errno.h>

#include <array>
#include <cstring>
#include <unordered_set>

#include "base/system.h"
#include "transport/interface.h"
#include "transport/socket_address.h"
#include "transport_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::transport;

TestSuite(transport_address, .timeout = 300);

namespace {

SocketAddress address(const char* text) {
    return test::must(SocketAddress::parse(text));
}

}  // namespace

Test(transport_address, parses_and_prints) {
    cr_assert_eq(address("10.1.2.3:77").to_string(), "10.1.2.3:77");
    cr_assert_eq(address("10.1.2.3").port(), 0);
    cr_assert_eq(address("[fd00::1]:65535").to_string(), "[fd00::1]:65535");
    cr_assert_eq(address("fd00::1").to_string(), "[fd00::1]:0");
    cr_assert_eq(fmt::format("{}", address("[::]:1")), "[::]:1");
    for (const char* bad :
         {"", "eth0", "10.1.2", "10.1.2.3:", "10.1.2.3:65536", "10.1.2.3:x", "[::1", "[::1]5", "::g"}) {
        const bool accepted = SocketAddress::parse(bad).ok();
        // Only the empty port is debatable; the parser accepts it as no port.
        cr_assert_eq(accepted, std::strcmp(bad, "10.1.2.3:") == 0, "\"%s\"", bad);
    }
}

Test(transport_address, compares_what_counts) {
    in6_addr local{};
    local.s6_addr[0] = 0xfe;
    local.s6_addr[1] = 0x80;
    const SocketAddress first(local, 5, 2);
    const SocketAddress second(local, 5, 3);
    cr_assert(first == second);
    cr_assert_eq(first.hash(), second.hash());
    cr_assert_not(address("1.2.3.4:5") == address("1.2.3.4:6"));
    cr_assert_not(address("1.2.3.4:5") == address("1.2.3.5:5"));
    cr_assert_not(address("0.0.0.0:5") == address("[::]:5"));
    cr_assert(address("1.2.3.4:5").same_host(address("1.2.3.4:6")));
    std::unordered_set<SocketAddress> set{address("1.2.3.4:5"), address("1.2.3.4:5"), address("1.2.3.4:6")};
    cr_assert_eq(set.size(), 2);
}

Test(transport_address, link_local_addresses_are_seen_from_an_interface) {
    for (const char* text : {"fe80::1", "febf::1", "169.254.0.1"})
        cr_assert(address(text).is_link_local(), "%s", text);
    for (const char* text : {"fec0::1", "fd00::1", "::1", "ff02::1", "169.253.0.1", "10.0.0.1"})
        cr_assert_not(address(text).is_link_local(), "%s", text);
    cr_assert_eq(address("fe80::1").with_scope(9).seen_from(3).scope(), 3);
    cr_assert_eq(address("fd00::1").with_scope(9).seen_from(3).scope(), 0);
    cr_assert(address("169.254.0.1:7").seen_from(3) == address("169.254.0.1:7"));
}

namespace {

Interface interface(const char* name, std::initializer_list<const char*> addresses) {
    Interface made;
    made.name = name;
    for (const char* text : addresses) made.addresses.push_back(address(text));
    return made;
}

std::string order(std::initializer_list<const char*> listed, const char* wanted) {
    std::vector<Interface> interfaces{interface("eth0", {"10.0.0.1", "fe80::1", "fd00::1"}),
                                      interface("docker0", {"172.17.0.1", "fe80::2"}),
                                      interface("lo", {"127.0.0.1", "::1"}),
                                      interface("eth1", {"10.1.0.1", "169.254.1.1"})};
    interfaces[1].inner_bridge = true;
    interfaces[2].loopback = true;
    std::vector<SocketAddress> addresses;
    for (const char* text : listed) addresses.push_back(*text == '-' ? SocketAddress() : address(text));
    std::string text;
    for (const std::size_t i : order_addresses(addresses, interfaces, wanted)) text += std::to_string(i);
    return text;
}

}  // namespace

Test(transport_address, what_leads_to_other_hosts_is_offered_first) {
    cr_assert_eq(order({}, ""), "");
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1", "127.0.0.1", "fe80::1", "fd00::1"}, ""), "14302");
    cr_assert_eq(order({"::1", "fe80::2", "169.254.1.1", "10.1.0.1"}, ""), "3210");
    // An endpoint without an IP address, or with an address of no interface, keeps its place.
    cr_assert_eq(order({"-", "10.9.9.9", "10.0.0.1", "-"}, ""), "0123");
}

Test(transport_address, the_interface_that_the_user_wants_is_all_that_is_offered) {
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1", "-", "10.1.0.1", "fd00::1"}, "eth1"), "23");
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1", "fe80::1", "fd00::1"}, "eth0"), "132");
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1", "fd00::1"}, "fd00::1"), "2");
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1"}, "docker0"), "0");
    // Other code reports a missing interface.
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1"}, "nope"), "10");
    cr_assert_eq(order({"172.17.0.1", "10.0.0.1"}, "10.1.0.1"), "10");
}

Test(transport_address, takes_bytes_of_any_kind) {
    const SocketAddress v4 = address("1.2.3.4:5");
    const Bytes raw = v4.bytes();
    auto same = SocketAddress::from_bytes(raw);
    cr_assert(same.ok() && same.value() == v4);
    for (std::size_t size = 0; size < raw.size(); ++size)
        cr_assert_not(SocketAddress::from_bytes(raw.first(size)).ok(), "%zu bytes", size);
    const char name[] = "fi_shm://1000:4711";
    cr_assert_not(SocketAddress::from_bytes(std::as_bytes(std::span(name))).ok());
    cr_assert_not(SocketAddress::from(nullptr, 16).ok());
}

Test(transport_address, reads_no_more_than_an_address) {
    // Sanitizers know the end of memory on the heap; an array of addresses does not carry its length.
    const SocketAddress v4 = address("1.2.3.4:5");
    const std::vector<std::byte> alone(v4.bytes().begin(), v4.bytes().end());
    auto same = SocketAddress::from_bytes({alone.data(), SocketAddress::capacity()});
    cr_assert(same.ok() && same.value() == v4);
}

Test(transport_address, finds_the_loopback) {
    const Interface by_name = test::must(find_interface("lo"));
    cr_assert(by_name.loopback);
    cr_assert_gt(by_name.mtu, 1000);
    for (const char* text : {"127.0.0.1", "127.9.9.9"}) {
        const Interface by_address = test::must(find_interface(text));
        cr_assert_eq(by_address.name, "lo");
        cr_assert(by_address.v4->same_host(address(text)));
    }
}

Test(transport_address, says_what_is_missing) {
    auto name = find_interface("nosuch0");
    cr_assert_not(name.ok());
    cr_assert_eq(name.error().code, ENODEV);
    cr_assert_neq(name.error().message.find("nosuch0"), std::string::npos);
    cr_assert_neq(name.error().message.find("lo 127.0.0.1"), std::string::npos, "%s",
                  name.error().message.c_str());
    auto foreign = find_interface("203.0.113.77");
    cr_assert_not(foreign.ok());
    cr_assert_eq(foreign.error().code, EADDRNOTAVAIL);
    cr_assert_neq(foreign.error().message.find("203.0.113.77"), std::string::npos);
    cr_assert_not(find_interface_by_address(SocketAddress()).ok());
}

Test(transport_address, finds_by_address_and_wildcard) {
    test::enter_network_namespace();
    const Interface v4 = test::must(find_interface("10.77.0.1"));
    cr_assert_eq(v4.name, "mc0");
    cr_assert_eq(v4.mtu, 1500);
    cr_assert(v4.multicast && v4.up && !v4.loopback);
    const Interface v6 = test::must(find_interface("fd77::1"));
    cr_assert_eq(v6.index, v4.index);
    cr_assert(v6.v6->same_host(address("fd77::1")), "the global address comes before the link-local one");
    cr_assert_eq(test::must(find_interface("0.0.0.0")).name, "mc0");
    test::shell("ip addr add 10.77.0.9/24 dev mc0");
    const Interface second = test::must(find_interface("10.77.0.9"));
    cr_assert(second.v4->same_host(address("10.77.0.9")), "the requested address is the one to send from");
}

Test(transport_address, groups_are_random_and_keep_off_reserved_blocks) {
    std::unordered_set<SocketAddress> seen;
    for (int i = 0; i < 20000; ++i) {
        std::array<std::byte, kGroupRandomBytes> random;
        cr_assert(kernel_random(random).ok());
        const SocketAddress v4 = random_group_address(4, random);
        const SocketAddress v6 = random_group_address(6, random);
        cr_assert(v4.is_multicast() && v6.is_multicast());
        cr_assert(v4.port() >= 20000 && v4.port() <= 32767);
        cr_assert_eq(v4.address_bytes()[0], std::byte{239});
        cr_assert_eq(v6.address_bytes()[1], std::byte{0x15});
        seen.insert(v4.with_port(0));
        seen.insert(v6.with_port(0));
    }
    // 20,000 out of 2^24 collide about a dozen times, out of 2^112 never.
    cr_assert_gt(seen.size(), 39900);
}

Test(transport_address, reserved_draws_are_moved) {
    for (const int high : {0, 0x7f, 0x80, 0xff}) {
        for (const int middle : {0, 0x7f, 0x80, 0xff}) {
            for (const int extra : {0, 0xff}) {
                std::array<std::byte, kGroupRandomBytes> random;
                random.fill(static_cast<std::byte>(extra));
                random[3] = static_cast<std::byte>(high);
                random[4] = static_cast<std::byte>(middle);
                const SocketAddress group = random_group_address(4, random);
                const Bytes bytes = group.address_bytes();
                const int second = std::to_integer<int>(bytes[1]);
                const int third = std::to_integer<int>(bytes[2]);
                cr_assert_not(second == 255 && third == 255, "239.255.255/24 is assigned");
                cr_assert_not((second & 0x7f) == 0 && third == 0,
                              "it shares 224.0.0/24's Ethernet addresses");
            }
        }
    }
}
