// The floor of a comparison: see perf_floor.h.
//
// Between hosts. A broadcast is a series of datagrams from the root to one multicast address, which all other
// ranks read: one sendmmsg() with UDP_SEGMENT for every few hundred datagrams, straight from the user's
// memory and straight to its destination. Barrier and allreduce are a datagram from each rank to rank 0, and
// a multicast of rank 0 as the end: N messages, 2(N - 1) receptions. A multicast of every rank to every rank
// would save one way, but cost N(N - 1) receptions, which dominate where ranks share cores. Nothing is
// repaired. A rank without input for kTimeoutUs gives up; that round is not counted. MCASTCOLL_PERF_SPARE
// additional datagrams follow each multicast, to measure the cost of copies or parity.
//
// On one host. Each rank has a flag in shared memory: a broadcast is a copy into that memory and out of it,
// in pieces, so that the second copy begins before the first ends; for a barrier all ranks poll the flags of
// all; for an allreduce a rank's numbers are beside its flag, and every rank adds the numbers of all.
//
// Ownership: a floor lives as long as the process; its shared memory as long as a cell.
#define _GNU_SOURCE  // sendmmsg

#include "perf_floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <mpi.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    kDatagramBytes = 1472,  // an Ethernet frame, less the headers of IPv4 and UDP
    kMaxRun = 44,           // datagrams in one segmented message of at most 64 KB
    kMaxRuns = 8,           // of one sendmmsg()
    kMaxRanks = 1024,
    kMaxSpare = 100,
    kSocketBytes = 16 << 20,
    kPieceBytes = 64 << 10,
    kLineBytes = 64
};
static const double kTimeoutUs = 200e3;

struct header {
    uint32_t serial, index, from;
};
enum { kPayloadBytes = kDatagramBytes - sizeof(struct header) };

struct flag {
    _Alignas(
        kLineBytes) _Atomic uint64_t value;  // the operation's serial, plus in a broadcast the pieces done
};

// The addresses published by rank 0.
struct rendezvous {
    struct sockaddr_in group, root;
};

struct perf_floor {
    int rank, size;
    bool yields, one_host;
    enum perf_floor_operation operation;
    int in, out;     // multicasts
    int root;        // on rank 0: input; on other ranks: output to rank 0
    long spare;      // additional datagrams behind each multicast
    uint64_t lost;   // datagrams
    MPI_Win window;  // the shared memory: a flag for each rank, and the common data
    struct flag* flags;
    uint8_t* shared;
    struct header headers[kMaxRuns * kMaxRun];
    struct iovec pieces[kMaxRuns * kMaxRun * 2];
    uint8_t gathered[kMaxRanks][kDatagramBytes];
};

static void rest(const struct perf_floor* f) {
    if (f->yields) sched_yield();
}

static int udp_socket(uint16_t* port, bool shares) {
    const int one = 1, bytes = kSocketBytes,
              fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = *port};
    socklen_t length = sizeof(at);
    if (fd < 0 || (shares && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0) ||
        bind(fd, (struct sockaddr*)&at, sizeof(at)) != 0 ||
        getsockname(fd, (struct sockaddr*)&at, &length) != 0)
        return -1;
    // As large as permitted; datagrams that do not fit are lost, and counted.
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    *port = at.sin_port;
    return fd;
}

static bool open_sender(struct perf_floor* f, const struct sockaddr_in* group, bool loops) {
    uint16_t port = 0;
    const int loop = loops, segment = kDatagramBytes;
    f->out = udp_socket(&port, false);
    return f->out >= 0 && setsockopt(f->out, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof(loop)) == 0 &&
           setsockopt(f->out, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0 &&
           connect(f->out, (const struct sockaddr*)group, sizeof(*group)) == 0;
}

static bool open_receiver(struct perf_floor* f, const struct sockaddr_in* group) {
    const struct ip_mreqn membership = {.imr_multiaddr = group->sin_addr};
    const int zero = 0, one = 1;
    if (f->in < 0) {
        uint16_t port = group->sin_port;
        f->in = udp_socket(&port, true);
    }
    return f->in >= 0 && setsockopt(f->in, IPPROTO_IP, IP_MULTICAST_ALL, &zero, sizeof(zero)) == 0 &&
           setsockopt(f->in, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof(membership)) == 0 &&
           setsockopt(f->in, SOL_UDP, UDP_GRO, &one, sizeof(one)) == 0;
}

// Rank 0 opens sockets first: the other ranks need the ports.
static bool open_rendezvous(struct perf_floor* f, bool loops, struct rendezvous* m) {
    memset(m, 0, sizeof(*m));
    if (f->rank != 0) return true;
    const uint32_t chance = (uint32_t)perf_now_us() * 2654435761U + (uint32_t)getpid();
    m->group.sin_family = m->root.sin_family = AF_INET;
    m->group.sin_addr.s_addr = htonl(0xefc30000U | (chance >> 16));  // 239.195.0.0/16
    f->in = udp_socket(&m->group.sin_port, true);
    f->root = udp_socket(&m->root.sin_port, false);
    struct sockaddr_in own;
    socklen_t length = sizeof(own);
    if (f->in < 0 || f->root < 0 || !open_sender(f, &m->group, loops) ||
        getsockname(f->out, (struct sockaddr*)&own, &length) != 0)
        return false;
    m->root.sin_addr = own.sin_addr;
    return true;
}

static bool open_sockets(struct perf_floor* f, bool loops) {
    struct rendezvous m;
    bool good = open_rendezvous(f, loops, &m);
    MPI_Bcast(&m, sizeof(m), MPI_BYTE, 0, MPI_COMM_WORLD);
    good = good && open_receiver(f, &m.group);
    if (f->rank == 0) return good;
    uint16_t port = 0;
    f->root = udp_socket(&port, false);
    return good && f->root >= 0 && open_sender(f, &m.group, loops) &&
           connect(f->root, (struct sockaddr*)&m.root, sizeof(m.root)) == 0;
}

struct perf_floor* perf_floor_open(bool yields, const char** error) {
    struct perf_floor* f = calloc(1, sizeof(*f));
    *error = "no memory";
    if (f == NULL) return NULL;
    MPI_Comm host;
    int neighbours = 0, good = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &f->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &f->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &neighbours);
    MPI_Comm_free(&host);
    // With one rank per host, no loopback copy is needed; all ranks must agree on the kind of placement.
    const int loops = neighbours > 1;
    const char* spare = getenv("MCASTCOLL_PERF_SPARE");
    char* end = NULL;
    f->spare = spare == NULL ? 0 : strtol(spare, &end, 10);
    MPI_Allreduce(MPI_IN_PLACE, &neighbours, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    f->yields = yields;
    f->one_host = neighbours == f->size;
    f->in = f->out = f->root = -1;
    if (f->size > kMaxRanks) good = 0, *error = "too many ranks";
    if (f->spare < 0 || f->spare > kMaxSpare || (spare != NULL && (end == spare || *end != '\0')))
        good = 0, *error = "MCASTCOLL_PERF_SPARE must be 0 to 100";
    if (good && !f->one_host && !open_sockets(f, loops)) good = 0, *error = strerror(errno);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good ? f : NULL;
}

const char* perf_floor_begin(struct perf_floor* f, enum perf_floor_operation operation, uint64_t bytes) {
    if (operation == kFloorNone) return "the floor does not have it";
    if (operation == kFloorAllreduce && bytes > kPayloadBytes)
        return "the floor does not have it: of more than a datagram";
    f->operation = operation;
    if (!f->one_host) return NULL;
    const uint64_t flags = (uint64_t)f->size * sizeof(struct flag);
    const uint64_t all = flags + bytes * (operation == kFloorAllreduce ? (uint64_t)f->size : 1);
    void* at = NULL;
    MPI_Aint length = f->rank == 0 ? (MPI_Aint)all : 0;
    int unit = 1;
    MPI_Win_allocate_shared(length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &f->window);
    MPI_Win_shared_query(f->window, 0, &length, &unit, &at);
    if (f->rank == 0) memset(at, 0, all);
    f->flags = at;
    f->shared = (uint8_t*)at + flags;
    MPI_Barrier(MPI_COMM_WORLD);
    return NULL;
}

void perf_floor_end(struct perf_floor* f) {
    if (f->one_host) MPI_Win_free(&f->window);
}

uint64_t perf_floor_lost(const struct perf_floor* f) {
    return f->lost;
}

// ---- between hosts

// Lays out I/O vectors over the user's memory: a header and a part of the data in turn, for `count` datagrams
// from `first` on.
static int lay_out(struct perf_floor* f, int at, uint64_t first, uint64_t count, uint8_t* data,
                   uint64_t bytes) {
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t from = (first + i) * kPayloadBytes, left = bytes - from;
        struct iovec* piece = &f->pieces[2 * ((uint64_t)at + i)];
        piece[0] = (struct iovec){&f->headers[(uint64_t)at + i], sizeof(struct header)};
        piece[1] = (struct iovec){data + from, left < kPayloadBytes ? left : kPayloadBytes};
    }
    return at + (int)count;
}

static uint64_t datagrams_of(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + kPayloadBytes - 1) / kPayloadBytes;
}

// Repeats a message's first datagram; receivers drop these as duplicates.
static void cast_spares(struct perf_floor* f, uint64_t serial, uint8_t* data, uint64_t bytes) {
    struct header h = {(uint32_t)serial, 0, (uint32_t)f->rank};
    struct iovec pieces[2] = {{&h, sizeof(h)}, {data, bytes < kPayloadBytes ? bytes : kPayloadBytes}};
    const struct msghdr m = {.msg_iov = pieces, .msg_iovlen = 2};
    for (long i = 0; i < f->spare; ++i)
        while (sendmsg(f->out, &m, 0) < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)) rest(f);
}

static void cast(struct perf_floor* f, uint64_t serial, uint8_t* data, uint64_t bytes) {
    const uint64_t all = datagrams_of(bytes);
    for (uint64_t next = 0; next < all;) {
        struct mmsghdr runs[kMaxRuns];
        int count = 0, used = 0, sent = 0;
        memset(runs, 0, sizeof(runs));
        for (; count < kMaxRuns && next < all; ++count) {
            const uint64_t left = all - next, run = left < kMaxRun ? left : kMaxRun;
            runs[count].msg_hdr.msg_iov = &f->pieces[2 * used];
            runs[count].msg_hdr.msg_iovlen = 2 * run;
            for (uint64_t i = 0; i < run; ++i)
                f->headers[(uint64_t)used + i] =
                    (struct header){(uint32_t)serial, (uint32_t)(next + i), (uint32_t)f->rank};
            used = lay_out(f, used, next, run, data, bytes);
            next += run;
        }
        while (sent < count) {
            const int now = sendmmsg(f->out, runs + sent, (unsigned)(count - sent), 0);
            if (now > 0)
                sent += now;
            else if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)
                rest(f);
            else
                return;  // the other ranks count the datagram as lost
        }
    }
    cast_spares(f, serial, data, bytes);
}

// Accounts for a run of datagrams; returns the next expected number.
static uint64_t take_run(struct perf_floor* f, uint64_t serial, int from, uint64_t next, uint64_t bytes) {
    for (uint64_t at = 0; at * kDatagramBytes + sizeof(struct header) <= bytes; ++at) {
        const struct header* h = &f->headers[at];
        // Belongs to a round that was given up.
        if (h->serial != (uint32_t)serial || h->from != (uint32_t)from || h->index < next) continue;
        f->lost += h->index - next;
        next = (uint64_t)h->index + 1;
    }
    return next;
}

static bool receive_all(struct perf_floor* f, uint64_t serial, int from, uint8_t* data, uint64_t bytes) {
    const uint64_t all = datagrams_of(bytes), lost_before = f->lost;
    double quiet_since = perf_now_us();
    for (uint64_t next = 0; next < all;) {
        const uint64_t left = all - next;
        struct msghdr m = {.msg_iov = f->pieces};
        m.msg_iovlen = 2 * (size_t)lay_out(f, 0, next, left < kMaxRun ? left : kMaxRun, data, bytes);
        const double now = perf_now_us();  // a process that was not scheduled for long polls once more
        const ssize_t got = recvmsg(f->in, &m, 0);
        if (got >= 0) {
            next = take_run(f, serial, from, next, (uint64_t)got);
            quiet_since = now;
        } else if (now - quiet_since > kTimeoutUs) {
            f->lost += all - next;
            break;
        } else {
            rest(f);
        }
    }
    return f->lost == lost_before;
}

static void send_to_root(struct perf_floor* f, const struct perf_side* s, uint64_t bytes) {
    const struct header h = {(uint32_t)s->serial, 0, (uint32_t)f->rank};
    struct iovec pieces[2] = {{(void*)&h, sizeof(h)}, {s->send, bytes}};
    const struct msghdr m = {.msg_iov = pieces, .msg_iovlen = 2};
    while (sendmsg(f->root, &m, 0) < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR)) rest(f);
}

static void add(uint8_t* sum, const uint8_t* more, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += sizeof(double)) {
        double a, b;
        memcpy(&a, sum + at, sizeof(a)), memcpy(&b, more + at, sizeof(b));
        a += b;
        memcpy(sum + at, &a, sizeof(a));
    }
}

// Rank 0's part: receives a datagram from every other rank.
static bool gather(struct perf_floor* f, const struct perf_side* s, uint64_t bytes) {
    int missing = f->size - 1;
    struct mmsghdr all[kMaxRanks];
    struct iovec pieces[kMaxRanks];
    memset(all, 0, (size_t)missing * sizeof(all[0]));
    for (int i = 0; i < missing; ++i) {
        pieces[i] = (struct iovec){f->gathered[i], kDatagramBytes};
        all[i].msg_hdr.msg_iov = &pieces[i];
        all[i].msg_hdr.msg_iovlen = 1;
    }
    memcpy(s->receive, s->send, bytes);
    double quiet_since = perf_now_us();
    while (missing > 0) {
        const double now = perf_now_us();
        const int got = recvmmsg(f->root, all, (unsigned)missing, 0, NULL);
        for (int i = 0; i < got; ++i) {
            struct header h;
            memcpy(&h, f->gathered[i], sizeof(h));
            if (h.serial != (uint32_t)s->serial || all[i].msg_len != sizeof(h) + bytes) continue;
            add(s->receive, f->gathered[i] + sizeof(h), bytes);
            --missing;
        }
        if (got > 0) {
            quiet_since = now;
        } else if (now - quiet_since > kTimeoutUs) {
            f->lost += (uint64_t)missing;
            return false;
        } else {
            rest(f);
        }
    }
    return true;
}

static bool run_between_hosts(struct perf_floor* f, const struct perf_side* s) {
    const uint64_t bytes = f->operation == kFloorBarrier ? 0 : s->bytes;
    const int from = f->operation == kFloorBcast ? s->root : 0;
    if (f->operation != kFloorBcast) {
        if (f->rank != 0)
            send_to_root(f, s, bytes);
        else if (!gather(f, s, bytes))
            return false;
    }
    if (f->rank != from) return receive_all(f, s->serial, from, s->receive, bytes);
    cast(f, s->serial, s->receive, bytes);
    return true;
}

// ---- on one host

static void raise_flag(struct perf_floor* f, uint64_t value) {
    atomic_store_explicit(&f->flags[f->rank].value, value, memory_order_release);
}

static uint64_t wait_for(struct perf_floor* f, int rank, uint64_t min) {
    uint64_t value;
    while ((value = atomic_load_explicit(&f->flags[rank].value, memory_order_acquire)) < min) rest(f);
    return value;
}

static void bcast_here(struct perf_floor* f, const struct perf_side* s) {
    const uint64_t base = s->serial << 32,
                   pieces = s->bytes == 0 ? 1 : (s->bytes + kPieceBytes - 1) / kPieceBytes;
    for (uint64_t done = 0; done < pieces;) {
        const uint64_t there = f->rank == s->root ? done + 1 : wait_for(f, s->root, base + done + 1) - base;
        const uint64_t from = done * kPieceBytes, to = there < pieces ? there * kPieceBytes : s->bytes;
        if (f->rank == s->root) {
            memcpy(f->shared + from, s->receive + from, to - from);
            raise_flag(f, base + there);
        } else {
            memcpy(s->receive + from, f->shared + from, to - from);
        }
        done = there;
    }
}

static void run_on_host(struct perf_floor* f, const struct perf_side* s) {
    if (f->operation == kFloorBcast) return bcast_here(f, s);
    const bool adds = f->operation == kFloorAllreduce;
    if (adds) memcpy(f->shared + (uint64_t)f->rank * s->bytes, s->send, s->bytes);
    raise_flag(f, s->serial << 32);
    for (int rank = 0; rank < f->size; ++rank) {
        wait_for(f, rank, s->serial << 32);
        const uint8_t* const theirs = f->shared + (uint64_t)rank * s->bytes;
        if (adds && rank == 0)
            memcpy(s->receive, theirs, s->bytes);
        else if (adds)
            add(s->receive, theirs, s->bytes);
    }
}

bool perf_floor_run(struct perf_floor* f, const struct perf_side* s) {
    if (!f->one_host) return run_between_hosts(f, s);
    run_on_host(f, s);
    return true;
}
