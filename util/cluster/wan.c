// wan NETNS_A TUN_A NETNS_B TUN_B DELAY_us RATE_mbit LOSS_pct [QUEUE_bytes [COUNTERS]]
//
// A long link between two sites of the virtual cluster, for kernels without netem: two TUN devices in two
// network namespaces and this process between them. Each direction puts packets on the wire at RATE behind a
// drop-tail queue, loses LOSS % of them at random and delivers the rest DELAY later. The process ends when
// killed or when a namespace's device is removed.
//
// The relay counts packets in the file COUNTERS, which it maps, so that util/cluster/crossings can read the
// counters at any time. Payload is the data of TCP and UDP; acknowledgements have none.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unknown"
#endif

enum { kSlots = 16384, kMaxPacket = 2048, kBatch = 64 };
static const int64_t kSecond = 1000000000;

struct packet {
    int64_t due;  // time of delivery at the far end
    size_t length;
    unsigned char bytes[kMaxPacket];
};

// Layout for crossings: eight numbers for each direction, from A to B first.
struct counters {
    uint64_t packets, bytes;                  // put on the wire, IP headers included
    uint64_t payload_packets, payload_bytes;  // of these: packets with payload, and its bytes
    uint64_t lost, lost_payload_bytes;        // of these: lost on the wire
    uint64_t refused, refused_payload_bytes;  // dropped at the full queue
};
_Static_assert(sizeof(struct counters) == 64, "crossings reads eight numbers a direction");

// One direction of the link. Packets come due in the order of arrival, so a ring suffices as the timer queue.
struct direction {
    int from, to;
    int64_t wire_free_at;  // when the last accepted packet has left the near end
    unsigned head, tail;   // [head, tail) modulo kSlots are in flight
    struct packet* ring;
    struct counters* counters;
};

struct link {
    int64_t delay, max_backlog;  // ns
    double ns_per_byte, loss;
};

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * kSecond + t.tv_nsec;
}

static void die(const char* what) {
    fprintf(stderr, "wan: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double number(const char* text, const char* what, double min, double max) {
    char* end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= min && value <= max)) {
        fprintf(stderr, "wan: %s '%s' must be a number from %g to %g\n", what, text, min, max);
        exit(2);
    }
    return value;
}

static int open_tun(const char* netns, const char* name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", netns);
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET)) die(path);
    close(ns);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
    if (ioctl(fd, TUNSETIFF, &request)) die(name);
    return fd;
}

static struct counters* map_counters(const char* path) {
    static struct counters unread[2];
    if (path == NULL) return unread;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof unread)) die(path);
    void* at = mmap(NULL, sizeof unread, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) die(path);
    close(fd);
    return at;
}

// Payload bytes of a packet. Later fragments of a datagram count as payload entirely.
static size_t payload_of(const unsigned char* p, size_t length) {
    size_t at = 0;
    int protocol = -1;
    if (length >= 20 && p[0] >> 4 == 4) {
        at = (size_t)(p[0] & 15) * 4;
        protocol = p[9];
        if (((p[6] & 31) << 8 | p[7]) != 0) return length > at ? length - at : 0;
    } else if (length >= 40 && p[0] >> 4 == 6) {
        at = 40;
        protocol = p[6];
    }
    if (protocol == IPPROTO_UDP)
        at += 8;
    else if (protocol == IPPROTO_TCP && length >= at + 20)
        at += (size_t)(p[at + 12] >> 4) * 4;
    else
        return 0;
    return length > at ? length - at : 0;
}

static bool full(const struct direction* d) {
    return d->tail - d->head == kSlots;
}

// Returns when the next packet is due, 0 if none is in flight.
static int64_t deliver_due(struct direction* d) {
    for (; d->head != d->tail; d->head++) {
        struct packet* p = &d->ring[d->head % kSlots];
        if (p->due > now()) return p->due;
        // A packet refused by the device is lost, as on any wire; removal of the device ends the link.
        if (write(d->to, p->bytes, p->length) < 0 && errno == EBADFD) exit(0);
    }
    return 0;
}

static void take_in(struct direction* d, const struct link* l) {
    for (int i = 0; i < kBatch; i++) {
        struct packet scrap;
        struct packet* p = full(d) ? &scrap : &d->ring[d->tail % kSlots];
        ssize_t n = read(d->from, p->bytes, sizeof p->bytes);
        if (n < 0 && errno == EBADFD) exit(0);
        if (n <= 0) return;
        int64_t t = now();
        if (d->wire_free_at < t) d->wire_free_at = t;
        struct counters* c = d->counters;
        const size_t payload = payload_of(p->bytes, (size_t)n);
        if (p == &scrap || d->wire_free_at - t > l->max_backlog) {
            c->refused++;
            c->refused_payload_bytes += payload;
            continue;
        }
        c->packets++;
        c->bytes += (size_t)n;
        c->payload_packets += payload > 0;
        c->payload_bytes += payload;
        if (drand48() < l->loss) {
            c->lost++;
            c->lost_payload_bytes += payload;
            continue;
        }
        d->wire_free_at += (int64_t)((double)n * l->ns_per_byte);
        p->due = d->wire_free_at + l->delay;
        p->length = (size_t)n;
        d->tail++;
    }
}

// A real wire does not need a processor. Programs that wait in sched_yield() can occupy all cores for seconds
// and delay this process: peers that check over the link whether a host is alive would treat the host as
// failed, and Open MPI would give up connections.
static void run_before_others(void) {
    const struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first))
        fprintf(stderr, "wan: cannot get real-time priority, so packets may be late under load: %s\n",
                strerror(errno));
}

static void wait_for(struct direction d[2], int timer, int64_t due) {
    struct itimerspec at = {.it_value = {due / kSecond, due % kSecond}};  // all zero disarms it
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
    struct pollfd fds[3] = {{d[0].from, POLLIN, 0}, {d[1].from, POLLIN, 0}, {timer, POLLIN, 0}};
    if (poll(fds, 3, -1) < 0 && errno != EINTR) die("poll");
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0 && errno != EAGAIN) die("cannot read the timer");
}

int main(int argc, char** argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) return puts("mcastcoll " PACKAGE_VERSION) < 0;
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    if (argc < 8 || argc > 10) {
        fputs(
            "usage: wan NETNS_A TUN_A NETNS_B TUN_B DELAY_us RATE_mbit LOSS_pct [QUEUE_bytes [COUNTERS]]\n"
            "A link with delay, rate and loss between two network namespaces; util/cluster/up starts it.\n",
            help ? stdout : stderr);
        return help ? 0 : 2;
    }
    struct link l = {.delay = (int64_t)(number(argv[5], "DELAY_us", 0, 1e7) * 1000),
                     .ns_per_byte = 8000 / number(argv[6], "RATE_mbit", 0.001, 1e6),
                     .loss = number(argv[7], "LOSS_pct", 0, 100) / 100};
    l.max_backlog = (int64_t)((argc > 8 ? number(argv[8], "QUEUE_bytes", 1, 1e9) : 1 << 20) * l.ns_per_byte);
    struct counters* counters = map_counters(argc > 9 ? argv[9] : NULL);
    struct direction d[2] = {{.counters = &counters[0]}, {.counters = &counters[1]}};
    for (int i = 0; i < 2; i++)
        if (!(d[i].ring = calloc(kSlots, sizeof *d[i].ring)))
            die("cannot allocate the queue of packets in flight");
    d[0].from = d[1].to = open_tun(argv[1], argv[2]);
    d[0].to = d[1].from = open_tun(argv[3], argv[4]);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer < 0) die("cannot create the timer");
    prctl(PR_SET_TIMERSLACK, 1000);
    run_before_others();
    for (;;) {
        int64_t a = deliver_due(&d[0]), b = deliver_due(&d[1]);
        wait_for(d, timer, !a || (b && b < a) ? b : a);
        take_in(&d[0], &l);
        take_in(&d[1], &l);
    }
}
