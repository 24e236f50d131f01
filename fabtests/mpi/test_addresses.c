// Tests the choice of the address that connects a host with every other host, from published addresses.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/addresses.h"
#include "core/provider.h"

enum { kMaxHosts = 1024 };

static MccAddresses hosts[kMaxHosts];
static const MccAddresses* all[kMaxHosts];
static MccAddress chosen[kMccMaxAddresses];
static char reason[kMccReasonBytes];
static MccFound found[64];
static size_t found_count;

static MccAddress address(const char* interface, const char* text, unsigned prefix, MccReach reach) {
    MccAddress a = {.prefix = (uint8_t)prefix, .reach = (uint8_t)reach};
    a.family = NULL == strchr(text, ':') ? 4 : 6;
    cr_assert_eq(inet_pton(4 == a.family ? AF_INET : AF_INET6, text, a.bytes), 1, "%s", text);
    snprintf(a.interface, sizeof(a.interface), "%s", interface);
    return a;
}

static void add(const char* interface, const char* text, unsigned prefix, MccReach reach, int64_t speed) {
    found[found_count++] = (MccFound){address(interface, text, prefix, reach), speed};
}

// Makes host i from the added addresses, in a separate network stack.
static void host(size_t i) {
    hosts[i] = (MccAddresses){.stack = 100 + i};
    snprintf(hosts[i].host, sizeof(hosts[i].host), "h%zu", i);
    mcc_addresses_sort(&hosts[i], found, found_count);
    found_count = 0;
    all[i] = &hosts[i];
}

static const char* number(const char* format, size_t i) {
    static char text[64];
    snprintf(text, sizeof(text), format, (unsigned)i / 250, (unsigned)i % 250 + 1);
    return text;
}

static const char* choice(size_t count, size_t self) {
    static char text[64];
    if (0 == mcc_addresses_choose(all, count, self, chosen, reason)) return "none";
    cr_assert_eq(reason[0], '\0');
    snprintf(text, sizeof(text), "%s", chosen[0].interface);
    return text;
}

Test(addresses, docker_is_not_the_way_however_fast) {
    for (size_t i = 0; i < 4; ++i) {
        add("docker0", "172.17.0.1", 16, kMccInnerBridge, 100000);
        add("eth0", number("10.0.%u.%u", i), 16, kMccNetwork, 1000);
        host(i);
    }
    for (size_t i = 0; i < 4; ++i) {
        cr_assert_str_eq(choice(4, i), "eth0");
        cr_assert(mcc_address_is(
            &chosen[0],
            &(struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = 7, .sin_addr = {inet_addr(number("10.0.%u.%u", i))}},
            sizeof(struct sockaddr_in)));
    }
}

// The interface is not known to be a bridge, but its address is the same on every host.
Test(addresses, one_address_on_all_hosts_is_not_the_way) {
    for (size_t i = 0; i < 3; ++i) {
        add("usb0", "169.254.95.120", 16, kMccNetwork, 400000);
        add("eth0", number("10.0.%u.%u", i), 16, kMccNetwork, 1000);
        host(i);
    }
    cr_assert_str_eq(choice(3, 2), "eth0");
    for (size_t i = 0; i < 3; ++i) {
        add("docker0", "172.17.0.1", 16, kMccInnerBridge, 100000);
        host(i);
    }
    cr_assert_str_eq(choice(3, 0), "none");
    cr_assert(NULL != strstr(reason, "hosts h0 and h1 both have the address 172.17.0.1 of docker0"), "%s",
              reason);
    cr_assert(NULL != strstr(reason, "FI_MCASTCOLL_IFACE"));
}

Test(addresses, the_subnet_that_all_share_comes_first) {
    // Each host has another order of interfaces; the management network is slower; only some hosts have the
    // fast network.
    for (size_t i = 0; i < 5; ++i) {
        if (4 != i) add("ib0", number("10.9.%u.%u", i), 16, kMccNetwork, 200000);
        add(i % 2 ? "eno1" : "eth7", number("10.0.%u.%u", i), 16, kMccNetwork, 0 == i ? 10 : 100000);
        add(i % 2 ? "eth7" : "eno1", number("192.168.%u.%u", i), 16, kMccNetwork, 1000);
        host(i);
    }
    for (size_t i = 0; i < 5; ++i) {
        (void)choice(5, i);
        cr_assert_eq(chosen[0].bytes[0], 192, "rank 0's host has that one faster");
        cr_assert_eq(mcc_addresses_choose(all, 5, i, chosen, reason), 2);
        cr_assert_eq(chosen[1].bytes[0], 10);
        cr_assert_eq(chosen[1].bytes[1], 0);
    }
    cr_assert_str_eq(choice(4, 1), "ib0");
}

Test(addresses, global_before_link_local) {
    for (size_t i = 0; i < 3; ++i) {
        add("eth0", number("fe80::%x:%x", i), 64, kMccLink, 100000);
        add("eth0", number("fd00::%x:%x", i), 64, kMccNetwork, 100000);
        host(i);
    }
    cr_assert_str_eq(choice(3, 1), "eth0");
    cr_assert_eq(chosen[0].bytes[0], 0xfd);
    // With two links in one subnet, each host uses the same interface.
    for (size_t i = 0; i < 3; ++i) {
        add("eth0", number("fe80::1:%x:%x", i), 64, kMccLink, 2 == i ? 10 : 100);
        add("eth1", number("fe80::2:%x:%x", i), 64, kMccLink, 50);
        host(i);
    }
    for (size_t i = 0; i < 3; ++i) cr_assert_str_eq(choice(3, i), "eth0");
}

Test(addresses, hosts_behind_routers_share_no_subnet) {
    for (size_t i = 0; i < 4; ++i) {
        char text[32];
        snprintf(text, sizeof(text), "10.1.%zu.7", i);
        add("virbr0", "192.168.122.1", 24, kMccInnerBridge, 100000);
        add("priv0", i % 2 ? "192.168.0.1" : "192.168.0.2", 16, kMccNetwork, 50000);
        add("eth0", text, 24, kMccNetwork, 1000);
        add("eth0", number("fe80::%x:%x", i), 64, kMccLink, 1000);
        host(i);
    }
    for (size_t i = 0; i < 4; ++i) {
        cr_assert_str_eq(choice(4, i), "eth0");
        cr_assert_eq(chosen[0].bytes[0], 10, "all have a link-local address, on several links");
    }
    // A bridge may be a host's only connection, even if its ports do not look like network cards.
    add("br0", "10.1.3.7", 24, kMccInnerBridge, 1000);
    add("virbr0", "192.168.122.1", 24, kMccInnerBridge, 100000);
    host(3);
    cr_assert_str_eq(choice(4, 3), "br0");
    add("eth0", "fd00::1", 64, kMccNetwork, 1000);
    host(3);
    cr_assert_str_eq(choice(4, 0), "none");
    cr_assert(NULL != strstr(reason, "both have the address 192.168.") ||
                  NULL != strstr(reason, "no network connects all hosts"),
              "%s", reason);
}

Test(addresses, containers_of_one_network_stack_are_no_clash) {
    for (size_t i = 0; i < 3; ++i) {
        add("eth0", 2 == i ? "10.0.0.2" : "10.0.0.1", 24, kMccNetwork, 1000);
        host(i);
    }
    hosts[1].stack = hosts[0].stack;
    cr_assert(mcc_addresses_same_stack(all[0], all[1]) && !mcc_addresses_same_stack(all[0], all[2]));
    cr_assert_str_eq(choice(3, 1), "eth0");
    // Virtual machines from one snapshot: same boot ID, different addresses.
    hosts[2].stack = hosts[0].stack;
    cr_assert(!mcc_addresses_same_stack(all[0], all[2]));
}

Test(addresses, a_host_alone_needs_no_network) {
    host(0);
    cr_assert_str_eq(choice(1, 0), "none");
    cr_assert_eq(reason[0], '\0');
    add("docker0", "172.17.0.1", 16, kMccInnerBridge, 100000);
    add("eth0", "10.0.0.1", 24, kMccNetwork, 1);
    host(0);
    cr_assert_str_eq(choice(1, 0), "eth0");
    host(1);
    cr_assert_str_eq(choice(2, 0), "none");
    cr_assert(NULL != strstr(reason, "no network connects all hosts"), "%s", reason);
}

Test(addresses, of_many_the_best_are_published) {
    for (unsigned i = 0; i < 40; ++i) {
        char text[32];
        snprintf(text, sizeof(text), "10.3.%u.1", i);
        add("br", text, 24, kMccInnerBridge, 100000);
    }
    add("eth0", "10.0.0.1", 24, kMccNetwork, 0);
    host(0);
    cr_assert(kMccMaxAddresses == hosts[0].count && 0 == strcmp(hosts[0].list[0].interface, "eth0"));
}

Test(addresses, a_thousand_hosts, .timeout = 60) {
    for (size_t i = 0; i < kMaxHosts; ++i) {
        add("docker0", "172.17.0.1", 16, kMccNetwork, 100000);
        add("eth0", number("10.0.%u.%u", i), 16, kMccNetwork, 1000);
        host(i);
    }
    cr_assert_str_eq(choice(kMaxHosts, kMaxHosts - 1), "eth0");
    hosts[700].list[1] = hosts[30].list[1];
    cr_assert_str_eq(choice(kMaxHosts, 0), "none");
}

Test(addresses, lists_as_btl_tcp_has_them) {
    const MccAddress eth0 = address("eth0", "10.1.2.3", 24, kMccNetwork);
    const MccAddress six = address("eth0", "fd00::1", 64, kMccNetwork);
    static const char* const kFit[] = {"eth0",     "lo,eth0",     "10.0.0.0/8", "lo,10.1.0.0/16",
                                       "10.1.2.3", "10.1.2.3/32", "0.0.0.0/0"};
    static const char* const kDoNot[] = {"",         "eth",           "eth01",    "10.2.0.0/16",
                                         "10.1.2.4", "10.1.2.2/32",   "fd00::/8", "x/8",
                                         ",",        "10.1.2.128/25,"};
    for (size_t i = 0; i < sizeof(kFit) / sizeof(kFit[0]); ++i)
        cr_assert(mcc_addresses_listed(kFit[i], &eth0), "%s", kFit[i]);
    for (size_t i = 0; i < sizeof(kDoNot) / sizeof(kDoNot[0]); ++i)
        cr_assert(!mcc_addresses_listed(kDoNot[i], &eth0), "%s", kDoNot[i]);
    cr_assert(!mcc_addresses_listed(NULL, &eth0));
    cr_assert(mcc_addresses_listed("fd00::/8", &six) && !mcc_addresses_listed("10.0.0.0/8", &six));
}

// Uses the interfaces of this machine.
Test(addresses, absent_interfaces_change_nothing) {
    MccAddresses plain, other;
    mcc_addresses_read(&plain, "here", NULL, NULL, NULL);
    mcc_addresses_read(&other, "here", "nope0", "10.255.255.255/32,nope1", "");
    cr_assert_eq(memcmp(&plain, &other, sizeof(plain)), 0);
    for (uint32_t i = 0; i < plain.count; ++i) {
        mcc_addresses_read(&other, "here", plain.list[i].interface, "nope", NULL);
        cr_assert_gt(other.count, 0);
        for (uint32_t k = 0; k < other.count; ++k)
            cr_assert_str_eq(other.list[k].interface, plain.list[i].interface);
    }
}

static struct sockaddr_in members[4];

static bool distinct(int size) {
    reason[0] = '\0';
    return mcc_addresses_distinct((const uint8_t*)members, sizeof(members[0]), all, size, reason);
}

static void member(size_t rank, const char* text) {
    members[rank] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = (uint16_t)(100 + rank)};
    members[rank].sin_addr.s_addr = inet_addr(text);
}

Test(addresses, members_at_one_address_on_two_hosts) {
    for (size_t i = 0; i < 4; ++i) host(i);
    all[1] = all[0];  // one host
    member(0, "10.0.0.1"), member(1, "10.0.0.1"), member(2, "10.0.0.3"), member(3, "10.0.0.4");
    cr_assert(distinct(4));
    member(3, "10.0.0.1");
    cr_assert(!distinct(4));
    cr_assert(NULL != strstr(reason, "hosts h0 and h3 both have the address 10.0.0.1;"), "%s", reason);
    member(3, "127.0.0.1");
    cr_assert(!distinct(4));
    cr_assert(NULL != strstr(reason, "rank 3 on host h3 is at 127.0.0.1"), "%s", reason);
    member(0, "127.0.0.1"), member(1, "127.0.0.1");
    cr_assert(distinct(2), "one host alone");
    members[0].sin_family = AF_UNIX, members[2].sin_family = AF_UNIX;
    cr_assert(distinct(3), "names are no addresses");
}
