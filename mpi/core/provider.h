// A libfabric provider with collectives, as an MPI library's face opens it: without any MPI types, so that
// faces of different MPIs can share it; the thread that makes its progress for the program; and what members
// compare when a group forms, which each face has travel in its own way.
//
// Who owns what: MccProvider owns its libfabric objects and closes them in order, and knows every join that
// was begun (MccJoin), whether it is open or not. It has the lock, and whoever calls it takes that.

#ifndef MCASTCOLL_MPI_CORE_PROVIDER_H
#define MCASTCOLL_MPI_CORE_PROVIDER_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "core/addresses.h"
#include "core/secret.h"
#include "mcastcoll/mcastcoll.h"

static inline int64_t mcc_now_ns(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static inline double mcc_now_s(void) {
    return (double)mcc_now_ns(CLOCK_MONOTONIC) * 1e-9;
}

// A digest of the terms that must be the same everywhere: FNV-1a, to begin with kMccDigest.
#define kMccDigest UINT64_C(0xcbf29ce484222325)
static inline uint64_t mcc_digest(uint64_t state, const void* data, size_t bytes) {
    const uint8_t* p = data;
    for (size_t i = 0; i < bytes; ++i) state = (state ^ p[i]) * UINT64_C(0x100000001b3);
    return state;
}

// A member's word: 0, or its error (a positive FI_E code) and rank. The largest of all is what they agree on.
static inline int64_t mcc_word(int error, int rank) {
    return 0 == error ? 0 : (int64_t)error << 32 | (int64_t)rank;
}
static inline int mcc_word_error(int64_t word) {
    return (int)(word >> 32);
}
static inline int mcc_word_rank(int64_t word) {
    return (int)(word & INT32_MAX);
}

enum {
    kMccReasonBytes = 240,  // of a text that says why something is not so
    kMccProviderAddressBytes = 256,
    kMccProviderDatatypes = 16,    // libfabric's, FI_UINT128 being the last
    kMccProviderCollectives = 16,  // FI_BARRIER ... FI_GATHER
};

typedef ssize_t (*MccRun)(struct fid_mc*, const struct fi_mcastcoll_request*, int (*)(void*), void*);

typedef struct {
    pthread_mutex_t lock;   // guards all below, and every call of the provider but MccRun
    struct MccJoin* joins;  // oldest first
    unsigned ending;        // of these, which nobody uses any more
    // Where the endpoint is to be, best first, as far as the provider has such addresses.
    MccAddress wanted[kMccMaxAddresses];
    size_t wanted_count;
    // What is open.
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_domain* domain;
    struct fid_eq* eq;
    struct fid_cq* cq;
    struct fid_av* av;
    struct fid_ep* ep;
    size_t max_members;
    uint32_t collectives;  // bit FI_BROADCAST and so on: what it has
    // Bit FI_SUM of [FI_ALLREDUCE][FI_INT32] and so on: what it combines.
    uint16_t reductions[kMccProviderCollectives][kMccProviderDatatypes];
    uint8_t address[kMccProviderAddressBytes];
    size_t address_bytes;
    void* peers;  // the addresses met so far (mcc_peer)
} MccProvider;

// Opens everything, up to an enabled endpoint. `wait_object`: of the completion queue. On failure false, with
// a reason of kMccReasonBytes at most and nothing left open.
bool mcc_provider_open(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason);
void mcc_provider_close(MccProvider* p);
// Whether it has this collective, for these elements and this operator where it combines any (else FI_NOOP).
bool mcc_provider_has(const MccProvider* p, enum fi_collective_op collective, enum fi_datatype type,
                      enum fi_op op);
// Of what it has, which must be the same on all members.
uint64_t mcc_provider_digest(const MccProvider* p, uint64_t state);
// What the provider calls the process at these address_bytes: 0, or a positive FI_E code. A member of several
// communicators is put into the address vector once, so that all its groups name it alike.
int mcc_peer(MccProvider* p, const uint8_t* bytes, fi_addr_t* address);

// A communicator's way into the provider and out of it: the set of its members' addresses, the join, the end.
//
// A group outlives its communicator for the linger time: MPI_Comm_free need not synchronise, and a slower
// member may still need its data repaired.
//
// Who owns what: a join owns its set and its multicast group. It is the first member of a face's group, whose
// memory goes with it. Until the provider says that it ended it may still name the join, so that one that was
// given up must stay where it is.
typedef struct MccJoin {
    struct MccJoin* next;
    int rank, size;  // of its communicator
    struct fid_av_set* set;
    struct fid_mc* mc;
    fi_addr_t address;  // of the set; when it has joined, the group's
    struct fi_context2 context;
    bool posted, done;
    int error;  // positive FI_E code
    // What the provider has beyond libfabric's own calls; NULL or 0 where it has not. The members need not
    // have the same.
    MccRun run;  // an operation to its end
    int (*get_asked)(struct fid_mc*, uint64_t*);
    int (*get_counter)(struct fid_mc*, const char*, uint64_t*);
    ssize_t (*get_failure)(struct fid_mc*, char*, size_t);
    unsigned hosts, sites;  // of its members; 0: the provider does not tell
    unsigned refused;  // bits of enum fi_collective_op, the same on all members: what it has not after all
    unsigned users;    // what still names it: it stays meanwhile
    bool ends;         // nobody will use it any more: it is closed at close_at_s
    bool disposable;   // and freed
    double close_at_s;
} MccJoin;

// The provider knows it from now on. It is calloc()ed, and only rank and size are set. The lock is held.
void mcc_join_add(MccProvider* p, MccJoin* j);
// The set of the members' addresses, one after the other, locally: 0, or a positive FI_E code. The key tells
// apart what several threads join at once, in another order on each rank, with the same members; the secret
// in it members from strangers. The lock is held.
int mcc_join_begin(MccProvider* p, MccJoin* j, void* key, size_t key_bytes, const uint8_t* addresses);
// Joins, and waits for the end: 0, or a positive FI_E code; FI_ETIMEDOUT may leave it open.
// `step`: what a member does while it waits; a positive FI_E code where there is no use in waiting on. The
// lock is not held.
int mcc_join(MccProvider* p, MccJoin* j, int timeout_ms, int (*step)(void* who), void* who);
// Reads what the provider says about joins. The lock is held.
void mcc_poll_joins(MccProvider* p);
// Reads completions. `ended` is told of each that is no join's: 0 or a positive FI_E code, and the provider's
// text. How many there were, or -FI_E where the queue itself failed.
typedef void (*MccEnded)(const void* context, int error, const char* text);
int mcc_poll(MccProvider* p, MccEnded ended);  // the lock is held
// Nobody will use it any more; `disposable`: nor its memory. The lock is held.
void mcc_join_end(MccProvider* p, MccJoin* j, int linger_ms, bool disposable);
// Closes all whose time has come, or all there are. 0, or what the provider said last: a positive FI_E code.
// The lock is held.
int mcc_joins_reap(MccProvider* p, bool all);

// stand_in.c: a thread that makes the provider's progress while no thread of the program is about.
//
// Why it exists: a member that has left an operation may have to repair others' losses while its program
// computes or waits where nobody calls the provider. The thread sleeps until no thread of the program has
// come by for a while. A timer tells it, which every such thread keeps putting off: while they do it does not
// wake at all. While it stands in it sleeps on the descriptor of the provider's queue. It makes no MPI calls,
// so that the program's thread level does not matter.
typedef struct {
    MccProvider* provider;
    int64_t away_ns;  // and a tick of the coarse clock, which is so cheap that every call can look at it
    // In place of the program, with the lock: what there is to do. In so many milliseconds it is called
    // again, even if nothing comes for the provider; -1: it need not be.
    int (*turn)(void);

    atomic_bool runs, stops;
    atomic_bool stands_in;
    atomic_int inside;  // threads that make all progress themselves
    _Atomic int64_t rings_at_ns;
    int alarm;
    pthread_t thread;
} MccStandIn;

// From now on, for who is away for so long, up to a tick more. False: no thread can be made.
bool mcc_stand_in_start(MccStandIn* s, MccProvider* p, int64_t away_ns, int (*turn)(void));
void mcc_stand_in_stop(MccStandIn* s);  // the lock is not held
// A thread of the program's is here. Without the lock or with it.
void mcc_seen(MccStandIn* s);
// One that stays, and makes progress by itself, whether or not it looks in here. mcc_leave() wants to know
// what mcc_enter() said: whether there was a thread to tell.
static inline bool mcc_enter(MccStandIn* s) {
    if (!atomic_load_explicit(&s->runs, memory_order_acquire)) return false;
    (void)atomic_fetch_add(&s->inside, 1);
    if (atomic_load_explicit(&s->stands_in, memory_order_relaxed)) atomic_store(&s->stands_in, false);
    return true;
}
static inline void mcc_leave(MccStandIn* s, bool told) {
    if (!told) return;
    (void)atomic_fetch_sub(&s->inside, 1);
    mcc_seen(s);
}

#endif
