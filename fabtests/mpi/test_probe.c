// Tests which host's datagrams the probe reports as missing.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "core/probe.h"
#include "core/provider.h"

static struct sockaddr_storage here;
static MccProbe probe;

// Opens the probe at a free port of the loopback address.
static void open_it(int family) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    memcpy(&here, AF_INET == family ? (void*)&v4 : (void*)&v6, AF_INET == family ? sizeof(v4) : sizeof(v6));
    probe = (MccProbe){.socket = -1, .group = 7, .count = 3, .ranks = {2, 4, 9}};
    mcc_probe_open(&probe, &here, sizeof(here));
    socklen_t size = sizeof(here);
    cr_assert(probe.socket >= 0 && 0 == getsockname(probe.socket, (struct sockaddr*)&here, &size));
}

static void send_as(int rank, uint64_t group) {
    MccProbe other = probe;
    other.socket = -1;
    other.group = group;
    mcc_probe_send(&other, rank, &here, &here, sizeof(here));
}

Test(probe, all_have_come) {
    static const int kFamilies[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; ++i) {
        open_it(kFamilies[i]);
        for (int rank = 0; rank < 10; ++rank) send_as(rank, 7);
        cr_assert_eq(mcc_probe_missing(&probe), -1);
        cr_assert_eq(probe.socket, -1);
    }
}

Test(probe, the_first_host_without_datagrams_is_named, .timeout = 60) {
    open_it(AF_INET);
    send_as(2, 7);
    send_as(3, 7);  // not the sender of its host
    send_as(4, 8);  // of another group
    send_as(9, 7);
    const double begun_s = mcc_now_s();
    cr_assert_eq(mcc_probe_missing(&probe), 4);
    cr_assert_gt(mcc_now_s() - begun_s, 0.9, "no time for those that take another way");
}

Test(probe, an_address_in_use_is_no_result) {
    open_it(AF_INET);
    MccProbe second = probe;
    mcc_probe_open(&second, &here, sizeof(here));
    cr_assert_eq(second.socket, -1);
    cr_assert_eq(mcc_probe_missing(&second), -1);
    mcc_probe_close(&probe);
    cr_assert_eq(mcc_probe_missing(&probe), -1);
}

Test(probe, names_are_no_addresses) {
    static const char kName[] = "fi_shm://1000:4711";
    probe = (MccProbe){.count = 1, .ranks = {1}};
    mcc_probe_open(&probe, kName, sizeof(kName));
    cr_assert_eq(probe.socket, -1);
    mcc_probe_send(&probe, 1, kName, kName, sizeof(kName));
    struct sockaddr_in cut = {.sin_family = AF_INET};
    mcc_probe_open(&probe, &cut, sizeof(cut) - 1);
    cr_assert_eq(probe.socket, -1);
}
