#include "core/probe.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/provider.h"

// If a fifth of the datagrams is lost, the loss of all eight has a probability of 3 in a million. An address
// resolution that the kernel must repeat once completes within a second.
enum { kDatagrams = 8, kGraceMs = 1000 };
static const uint64_t kMagic = UINT64_C(0x6d63636c70726f62);

typedef struct {
    uint64_t magic, group;
    uint32_t host;
} Datagram;

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} Address;

// Returns the size of the socket address in `bytes`, or 0 if it is not an IP address.
static socklen_t read_ip(const void* bytes, size_t count, Address* address) {
    memset(address, 0, sizeof(*address));
    memcpy(address, bytes, count < sizeof(*address) ? count : sizeof(*address));
    const sa_family_t family = address->any.sa_family;
    const socklen_t size = AF_INET == family    ? sizeof(address->v4)
                           : AF_INET6 == family ? sizeof(address->v6)
                                                : 0;
    return count >= size ? size : 0;
}

// Returns a socket bound to this address, or -1.
static int bind_at(const Address* address, socklen_t size) {
    if (0 == size) return -1;
    const int descriptor = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0 || 0 == bind(descriptor, &address->any, size)) return descriptor;
    (void)close(descriptor);
    return -1;
}

void mcc_probe_open(MccProbe* probe, const void* address, size_t bytes) {
    Address at;
    const socklen_t size = read_ip(address, bytes, &at);
    probe->socket = bind_at(&at, size);
}

void mcc_probe_send(const MccProbe* probe, int rank, const void* from, const void* to, size_t bytes) {
    Address own, there;
    unsigned host = 0;
    while (host < probe->count && rank != probe->ranks[host]) ++host;
    const socklen_t size = read_ip(from, bytes, &own);
    if (host == probe->count || 0 == size || size != read_ip(to, bytes, &there)) return;
    if (AF_INET == own.any.sa_family) {
        own.v4.sin_port = 0;
    } else {
        own.v6.sin6_port = 0;
        there.v6.sin6_scope_id = own.v6.sin6_scope_id;  // interface numbers are valid on their own host only
    }
    const int descriptor = bind_at(&own, size);
    if (descriptor < 0) return;
    const Datagram datagram = {.magic = kMagic, .group = probe->group, .host = host};
    for (int i = 0; i < kDatagrams; ++i)
        (void)sendto(descriptor, &datagram, sizeof(datagram), MSG_NOSIGNAL, &there.any, size);
    (void)close(descriptor);
}

static void take(const MccProbe* probe, bool* came) {
    Datagram datagram;
    for (ssize_t got; (got = recv(probe->socket, &datagram, sizeof(datagram), MSG_DONTWAIT)) >= 0;)
        if (sizeof(datagram) == got && kMagic == datagram.magic && probe->group == datagram.group &&
            datagram.host < kMccMaxProbed)
            came[datagram.host] = true;
}

int mcc_probe_missing(MccProbe* probe) {
    bool came[kMccMaxProbed] = {false};
    const double until_s = mcc_now_s() + 1e-3 * kGraceMs;
    unsigned host = probe->count;
    while (probe->socket >= 0) {
        take(probe, came);
        for (host = 0; host < probe->count && came[host];) ++host;
        const double left_s = until_s - mcc_now_s();
        if (host == probe->count || left_s <= 0) break;
        struct pollfd one = {.fd = probe->socket, .events = POLLIN};
        (void)poll(&one, 1, (int)(1e3 * left_s) + 1);
    }
    mcc_probe_close(probe);
    return host < probe->count ? probe->ranks[host] : -1;
}

void mcc_probe_close(MccProbe* probe) {
    if (probe->socket >= 0) (void)close(probe->socket);
    probe->socket = -1;
}
