#include "core/addresses.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/provider.h"

static size_t width_of(const MccAddress* a) {
    return 4 == a->family ? 4 : 16;
}

static bool in_subnet(const uint8_t* one, const uint8_t* other, unsigned bits) {
    const unsigned whole = bits / 8, rest = bits % 8;
    if (0 != memcmp(one, other, whole)) return false;
    return 0 == rest || 0 == ((one[whole] ^ other[whole]) >> (8 - rest));
}

// Converts a socket address. False: `from` is not an IP address.
static bool read_address(const struct sockaddr* from, size_t bytes, MccAddress* to) {
    sa_family_t family = AF_UNSPEC;
    if (NULL != from && bytes >= sizeof(family)) memcpy(&family, from, sizeof(family));
    if (AF_INET == family && bytes >= sizeof(struct sockaddr_in)) {
        to->family = 4;
        memcpy(to->bytes, (const uint8_t*)from + offsetof(struct sockaddr_in, sin_addr), 4);
        return true;
    }
    if (AF_INET6 == family && bytes >= sizeof(struct sockaddr_in6)) {
        to->family = 6;
        memcpy(to->bytes, (const uint8_t*)from + offsetof(struct sockaddr_in6, sin6_addr), 16);
        return true;
    }
    return false;
}

static const char* text_of(const MccAddress* a, char text[INET6_ADDRSTRLEN]) {
    const char* written = inet_ntop(4 == a->family ? AF_INET : AF_INET6, a->bytes, text, INET6_ADDRSTRLEN);
    return NULL != written ? written : "?";
}

static bool is_link_local(const MccAddress* a) {
    if (4 == a->family) return 169 == a->bytes[0] && 254 == a->bytes[1];
    return 0xfe == a->bytes[0] && 0x80 == (a->bytes[1] & 0xc0);
}

static bool is_loopback(const MccAddress* a) {
    static const uint8_t kLoopback6[16] = {[15] = 1};
    return 4 == a->family ? 127 == a->bytes[0] : 0 == memcmp(a->bytes, kLoopback6, sizeof(kLoopback6));
}

// Returns whether the interface is a network card, or is built on other interfaces, as a bond or a VLAN is.
// The provider has the same test (transport/interface.cc) but is not loaded yet when MPI_Init publishes the
// addresses.
static bool leads_out(const char* name) {
    static const char kLower[] = "lower_";
    char path[512];
    snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
    if (0 == access(path, F_OK)) return true;
    snprintf(path, sizeof(path), "/sys/class/net/%s", name);
    DIR* entries = opendir(path);
    bool found = false;
    for (struct dirent* one; NULL != entries && !found && NULL != (one = readdir(entries));)
        found = 0 == strncmp(one->d_name, kLower, sizeof(kLower) - 1);
    if (NULL != entries) (void)closedir(entries);
    return found;
}

// Returns whether the interface is a bridge that has no port out of the host, as Docker's and libvirt's
// bridges.
static bool is_inner_bridge(const char* name) {
    char path[512];
    snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", name);
    if (0 != access(path, F_OK)) return false;
    snprintf(path, sizeof(path), "/sys/class/net/%s/brif", name);
    DIR* ports = opendir(path);
    bool inner = true;
    for (struct dirent* port; NULL != ports && inner && NULL != (port = readdir(ports));)
        inner = '.' == port->d_name[0] || !leads_out(port->d_name);
    if (NULL != ports) (void)closedir(ports);
    return inner;
}

static int64_t speed_of(const char* name) {
    char path[64];
    long long speed = 0;
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
    FILE* file = fopen(path, "re");
    if (NULL == file) return 0;
    if (1 != fscanf(file, "%lld", &speed) || speed < 0) speed = 0;
    (void)fclose(file);
    return speed;
}

bool mcc_addresses_listed(const char* list, const MccAddress* address) {
    char word[128];
    for (const char* at = list; NULL != at && '\0' != *at;) {
        const size_t bytes = strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", (int)bytes, at);
        at += bytes + (',' == at[bytes]);
        if (0 == strcmp(word, address->interface)) return true;
        char* slash = strchr(word, '/');
        unsigned bits = 8 * (unsigned)width_of(address);
        if (NULL != slash) {
            *slash = '\0';
            const unsigned long given = strtoul(slash + 1, NULL, 10);
            bits = given < bits ? (unsigned)given : bits;
        }
        uint8_t subnet[16];
        if (1 == inet_pton(4 == address->family ? AF_INET : AF_INET6, word, subnet) &&
            in_subnet(subnet, address->bytes, bits))
            return true;
    }
    return false;
}

static int compare_found(const void* one, const void* other) {
    const MccFound *a = one, *b = other;
    if (a->address.reach != b->address.reach) return a->address.reach < b->address.reach ? -1 : 1;
    if (a->speed != b->speed) return a->speed > b->speed ? -1 : 1;
    if (a->address.family != b->address.family) return a->address.family < b->address.family ? -1 : 1;
    const int by_name = strcmp(a->address.interface, b->address.interface);
    return 0 != by_name ? by_name : memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes));
}

void mcc_addresses_sort(MccAddresses* own, MccFound* found, size_t count) {
    qsort(found, count, sizeof(*found), compare_found);
    own->count = (uint32_t)(count < kMccMaxAddresses ? count : kMccMaxAddresses);
    for (size_t i = 0; i < own->count; ++i) own->list[i] = found[i].address;
}

static unsigned bits_of(const struct sockaddr* mask, size_t bytes, unsigned all) {
    MccAddress as = {.family = 0};
    unsigned bits = 0;
    if (!read_address(mask, bytes, &as)) return all;
    while (bits < all && 0 != (as.bytes[bits / 8] >> (7 - bits % 8) & 1)) ++bits;
    return bits;
}

static bool describe(const struct ifaddrs* entry, MccFound* found) {
    *found = (MccFound){.speed = 0};
    MccAddress* a = &found->address;
    const bool usable = 0 != (entry->ifa_flags & IFF_UP) && 0 == (entry->ifa_flags & IFF_LOOPBACK);
    if (!usable || NULL == entry->ifa_addr) return false;
    const size_t bytes =
        AF_INET6 == entry->ifa_addr->sa_family ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!read_address(entry->ifa_addr, bytes, a)) return false;
    // An alias such as "eth0:1" is a label of an address.
    snprintf(a->interface, sizeof(a->interface), "%.*s", (int)strcspn(entry->ifa_name, ":"), entry->ifa_name);
    a->prefix = (uint8_t)bits_of(entry->ifa_netmask, bytes, 8 * (unsigned)width_of(a));
    const bool inner = is_inner_bridge(a->interface), local = is_link_local(a);
    if (inner && local) return false;  // reaches no other host
    a->reach = inner ? kMccInnerBridge : local ? kMccLink : kMccNetwork;
    found->speed = speed_of(a->interface);
    return true;
}

// Keeps only the addresses in the list, or (`listed` false) only the addresses outside the list. False: the
// list is empty, or no address would be left; then `found` stays unchanged.
static bool keep(MccFound* found, size_t* count, const char* list, bool listed) {
    size_t kept = 0, at = 0;
    if (NULL == list || '\0' == list[0]) return false;
    for (size_t i = 0; i < *count; ++i) kept += listed == mcc_addresses_listed(list, &found[i].address);
    if (0 == kept) return false;
    for (size_t i = 0; i < *count; ++i)
        if (listed == mcc_addresses_listed(list, &found[i].address)) found[at++] = found[i];
    *count = kept;
    return true;
}

static uint64_t digest_stack(const char* host) {
    char boot[64] = "", space[64] = "";
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = NULL != file && NULL != fgets(boot, sizeof(boot), file);
    if (NULL != file) (void)fclose(file);
    if (!read || readlink("/proc/self/ns/net", space, sizeof(space) - 1) <= 0)
        return mcc_digest(kMccDigest, host, strlen(host));
    return mcc_digest(mcc_digest(kMccDigest, boot, strlen(boot)), space, strlen(space));
}

void mcc_addresses_read(MccAddresses* own, const char* host, const char* only, const char* include,
                        const char* exclude) {
    struct ifaddrs* all = NULL;
    size_t max = 0, count = 0;
    memset(own, 0, sizeof(*own));
    snprintf(own->host, sizeof(own->host), "%s", host);
    own->stack = digest_stack(host);
    if (0 != getifaddrs(&all)) return;
    for (const struct ifaddrs* entry = all; NULL != entry; entry = entry->ifa_next) ++max;
    MccFound* found = calloc(max + 1, sizeof(*found));
    for (const struct ifaddrs* entry = all; NULL != found && NULL != entry; entry = entry->ifa_next)
        count += describe(entry, &found[count]);
    freeifaddrs(all);
    if (NULL == found) return;
    if (!keep(found, &count, only, true) && !keep(found, &count, include, true))
        (void)keep(found, &count, exclude, false);
    mcc_addresses_sort(own, found, count);
    free(found);
}

bool mcc_addresses_same_stack(const MccAddresses* a, const MccAddresses* b) {
    if (a == b) return true;
    if (a->stack != b->stack) return false;
    // Virtual machines resumed from one snapshot have the same boot ID, but different names and addresses.
    return 0 == strcmp(a->host, b->host) ||
           (a->count == b->count && 0 == memcmp(a->list, b->list, a->count * sizeof(a->list[0])));
}

// An address and its host.
typedef struct {
    MccAddress address;
    const MccAddresses* host;
    int rank;
} Owned;

static int compare_owned(const void* one, const void* other) {
    const Owned *a = one, *b = other;
    if (a->address.family != b->address.family) return a->address.family < b->address.family ? -1 : 1;
    const int by_bytes = memcmp(a->address.bytes, b->address.bytes, sizeof(a->address.bytes));
    return 0 != by_bytes ? by_bytes : (a->rank > b->rank) - (a->rank < b->rank);
}

static bool same_address(const MccAddress* a, const MccAddress* b) {
    return a->family == b->family && 0 == memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

// Sorts `owned` by address. Returns the first of two neighbouring entries with the same address on different
// network stacks, or NULL.
static const Owned* find_shared(Owned* owned, size_t count) {
    qsort(owned, count, sizeof(*owned), compare_owned);
    for (size_t i = 1; i < count; ++i)
        if (same_address(&owned[i - 1].address, &owned[i].address) &&
            !mcc_addresses_same_stack(owned[i - 1].host, owned[i].host))
            return &owned[i - 1];
    return NULL;
}

static void blame(const Owned* shared, char* reason) {
    char text[INET6_ADDRSTRLEN];
    const MccAddress* a = &shared[0].address;
    const bool named = '\0' != a->interface[0];
    snprintf(reason, kMccReasonBytes,
             "hosts %.31s and %.31s both have the address %s%s%.15s; set FI_MCASTCOLL_IFACE to the interface "
             "that connects all hosts",
             shared[0].host->host, shared[1].host->host, text_of(a, text), named ? " of " : "", a->interface);
}

// Finds an address of `host` in the subnet of the address `of`. Prefers the address of an interface with the
// same name.
static const MccAddress* find_in_subnet(const MccAddresses* host, const MccAddress* of) {
    const MccAddress* first = NULL;
    for (uint32_t i = 0; i < host->count; ++i) {
        const MccAddress* a = &host->list[i];
        if (a->family != of->family || a->prefix != of->prefix || !in_subnet(a->bytes, of->bytes, of->prefix))
            continue;
        if (0 == strcmp(a->interface, of->interface)) return a;
        if (NULL == first) first = a;
    }
    return first;
}

// Fills `owned` with each host's address in the subnet. Returns the index of the first host without such an
// address, or `count` if every host has one.
static size_t gather(const MccAddresses* const* hosts, size_t count, const MccAddress* subnet, Owned* owned) {
    for (size_t i = 0; i < count; ++i) {
        const MccAddress* a = find_in_subnet(hosts[i], subnet);
        if (NULL == a) return i;
        owned[i] = (Owned){*a, hosts[i], (int)i};
    }
    return count;
}

// Returns whether no other network stack has this address.
static bool is_alone(const Owned* owned, size_t count, const Owned* one) {
    const Owned *first = one, *end = owned + count;
    while (first > owned && same_address(&first[-1].address, &one->address)) --first;
    for (const Owned* at = first; at < end && same_address(&at->address, &one->address); ++at)
        if (!mcc_addresses_same_stack(at->host, one->host)) return false;
    return true;
}

// Chooses for each host the best address that is unique to the host, for hosts in several subnets with
// routers between them.
static bool choose_apart(const MccAddresses* const* hosts, size_t count, size_t self, unsigned family,
                         Owned* owned, MccAddress* chosen) {
    size_t all = 0;
    for (size_t i = 0; i < count; ++i)
        for (uint32_t k = 0; k < hosts[i]->count; ++k)
            if (kMccLink != hosts[i]->list[k].reach && family == hosts[i]->list[k].family)
                owned[all++] = (Owned){hosts[i]->list[k], hosts[i], (int)i};
    (void)find_shared(owned, all);
    for (size_t i = 0; i < count; ++i) {
        const MccAddress* best = NULL;
        for (uint32_t k = 0; NULL == best && k < hosts[i]->count; ++k) {
            const Owned key = {hosts[i]->list[k], hosts[i], (int)i};
            const Owned* at = bsearch(&key, owned, all, sizeof(*owned), compare_owned);
            if (NULL != at && is_alone(owned, all, at)) best = &hosts[i]->list[k];
        }
        if (NULL == best) return false;
        if (i == self) *chosen = *best;
    }
    return true;
}

// Chooses the addresses of host `self` in the subnets common to every host: with `networks`, only addresses
// of reach kMccNetwork, otherwise only all others.
static size_t choose_shared(const MccAddresses* const* hosts, size_t count, size_t self, bool networks,
                            Owned* owned, MccAddress* chosen, char* reason) {
    size_t found = 0;
    for (uint32_t i = 0; i < hosts[0]->count; ++i) {
        const MccAddress* subnet = &hosts[0]->list[i];
        if (networks != (kMccNetwork == subnet->reach)) continue;
        if (count != gather(hosts, count, subnet, owned)) continue;
        const MccAddress own = owned[self].address;
        const Owned* shared = find_shared(owned, count);
        if (NULL == shared)
            chosen[found++] = own;
        else if ('\0' == reason[0])
            blame(shared, reason);
    }
    return found;
}

size_t mcc_addresses_choose(const MccAddresses* const* hosts, size_t count, size_t self,
                            MccAddress chosen[kMccMaxAddresses], char* reason) {
    Owned* owned = calloc(count * kMccMaxAddresses + 1, sizeof(*owned));
    reason[0] = '\0';
    if (NULL == owned) {
        snprintf(reason, kMccReasonBytes, "no memory to compare the addresses of the hosts");
        return 0;
    }
    size_t found = choose_shared(hosts, count, self, true, owned, chosen, reason);
    // Link-local addresses look alike on every link and so do not prove a connection between the hosts.
    const bool apart = 0 == found && (choose_apart(hosts, count, self, 4, owned, &chosen[0]) ||
                                      choose_apart(hosts, count, self, 6, owned, &chosen[0]));
    found += apart ? 1 : choose_shared(hosts, count, self, false, owned, &chosen[found], reason);
    free(owned);
    bool several = false;
    for (size_t i = 1; i < count; ++i) several = several || !mcc_addresses_same_stack(hosts[0], hosts[i]);
    if (0 == found && several && '\0' == reason[0])
        snprintf(reason, kMccReasonBytes,
                 "no network connects all hosts, judging by their addresses; set FI_MCASTCOLL_IFACE to the "
                 "interface that does");
    if (found > 0) reason[0] = '\0';
    return found;
}

bool mcc_addresses_distinct(const uint8_t* members, size_t width, const MccAddresses* const* hosts, int size,
                            char* reason) {
    Owned* owned = calloc((size_t)size, sizeof(*owned));
    if (NULL == owned) return true;  // any problem shows when the group forms
    size_t count = 0;
    const Owned* alone = NULL;
    bool several = false;
    for (int rank = 0; rank < size; ++rank) {
        Owned* one = &owned[count];
        if (NULL == hosts[rank] ||
            !read_address((const void*)(members + (size_t)rank * width), width, &one->address))
            continue;
        one->host = hosts[rank];
        one->rank = rank;
        several = several || !mcc_addresses_same_stack(owned[0].host, one->host);
        if (NULL == alone && is_loopback(&one->address)) alone = one;
        ++count;
    }
    char text[INET6_ADDRSTRLEN];
    if (several && NULL != alone)
        snprintf(reason, kMccReasonBytes,
                 "rank %d on host %.31s is at %s, which is unreachable from other hosts; set "
                 "FI_MCASTCOLL_IFACE to the interface that connects all hosts",
                 alone->rank, alone->host->host, text_of(&alone->address, text));
    const Owned* shared = several && NULL == alone ? find_shared(owned, count) : NULL;
    if (NULL != shared) blame(shared, reason);
    const bool good = !several || (NULL == alone && NULL == shared);
    free(owned);
    return good;
}

bool mcc_address_is(const MccAddress* address, const void* socket_address, size_t bytes) {
    MccAddress other = {.family = 0};
    return read_address(socket_address, bytes, &other) && same_address(address, &other);
}
