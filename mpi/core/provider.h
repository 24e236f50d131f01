// A libfabric provider with collectives, as the MPI front ends open it, and the values compared by the
// members when a group forms, which each front end exchanges in its own way. This file uses no MPI types, so
// that front ends of different MPI libraries can share it.
//
// Ownership: MccProvider owns its libfabric objects, closes them in order, and lists every join from its
// begin, whether open or not. "The lock" is MccProvider's; the callers take the lock.

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

#define kMccDigest UINT64_C(0xcbf29ce484222325)
// Extends an FNV-1a digest by these bytes. `state` is the digest so far, kMccDigest at the start. Digests
// compare the parameters that must be the same on every member.
static inline uint64_t mcc_digest(uint64_t state, const void* data, size_t bytes) {
    const uint8_t* p = data;
    for (size_t i = 0; i < bytes; ++i) state = (state ^ p[i]) * UINT64_C(0x100000001b3);
    return state;
}

// Returns a member's status, one number: 0, or its error (a positive FI_E code) and its rank. The members
// agree on the maximum.
static inline int64_t mcc_status(int error, int rank) {
    return 0 == error ? 0 : (int64_t)error << 32 | (int64_t)rank;
}
static inline int mcc_status_error(int64_t status) {
    return (int)(status >> 32);
}
static inline int mcc_status_rank(int64_t status) {
    return (int)(status & INT32_MAX);
}

enum {
    kMccReasonBytes = 240,  // length of a text with the cause of a failure
    kMccProviderAddressBytes = 256,
    kMccProviderDatatypes = 16,    // of libfabric, up to FI_UINT128
    kMccProviderCollectives = 16,  // FI_BARRIER ... FI_GATHER
};

typedef ssize_t (*MccRun)(struct fid_mc*, const struct fi_mcastcoll_request*, int (*)(void*), void*);

typedef struct {
    pthread_mutex_t lock;   // guards all fields below and every provider call except MccRun
    struct MccJoin* joins;  // oldest first
    unsigned ending;        // number of joins no longer in use
    // Preferred addresses of the endpoint, best first. Addresses unknown to the provider are skipped.
    MccAddress wanted[kMccMaxAddresses];
    size_t wanted_count;
    // The open libfabric objects.
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_domain* domain;
    struct fid_eq* eq;
    struct fid_cq* cq;
    struct fid_av* av;
    struct fid_ep* ep;
    size_t max_members;
    uint32_t collectives;  // bit FI_BROADCAST etc.: the provider's collectives
    // Bit FI_SUM of [FI_ALLREDUCE][FI_INT32] etc.: the provider's reductions.
    uint16_t reductions[kMccProviderCollectives][kMccProviderDatatypes];
    uint8_t address[kMccProviderAddressBytes];
    size_t address_bytes;
    void* peers;  // addresses in the address vector (mcc_peer)
} MccProvider;

// Opens all objects, up to an enabled endpoint. `wait_object` is for the completion queue. On failure returns
// false with a reason (kMccReasonBytes) and closes what was opened.
bool mcc_provider_open(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason);
void mcc_provider_close(MccProvider* p);
// Returns whether the provider has this collective. For a reduction, returns whether the provider has the
// collective with elements of this type and this operator; other collectives have the operator FI_NOOP.
bool mcc_provider_has(const MccProvider* p, enum fi_collective_op collective, enum fi_datatype type,
                      enum fi_op op);
// Extends a digest by the provider's capabilities, which must be the same on every member.
uint64_t mcc_provider_digest(const MccProvider* p, uint64_t state);
// Finds the fi_addr_t of the process with the address `bytes`. Returns 0 or a positive FI_E code. Each
// process is inserted into the address vector only once, even if the process is a member of several
// communicators, so that all its groups use the same fi_addr_t.
int mcc_peer(MccProvider* p, const uint8_t* bytes, fi_addr_t* address);

// A communicator's join of the provider: the set of the members' addresses, the multicast group, and its end.
//
// A group outlives its communicator for the linger time: MPI_Comm_free need not synchronise, and a slower
// member may still need retransmissions.
//
// Ownership: a join owns its set and its multicast group. A join is the first field of a front end's group
// and is freed with this group. The provider may refer to a join that was given up until the provider reports
// the join's end, so the memory must stay until then.
typedef struct MccJoin {
    struct MccJoin* next;
    int rank, size;  // in its communicator
    struct fid_av_set* set;
    struct fid_mc* mc;
    fi_addr_t address;  // of the set; after the join, of the group
    struct fi_context2 context;
    bool posted, done;
    int error;  // positive FI_E code
    // The provider's extensions, or NULL or 0. Members may have different extensions.
    MccRun run;  // runs an operation to its end
    int (*get_naks_received)(struct fid_mc*, uint64_t*);
    int (*get_counter)(struct fid_mc*, const char*, uint64_t*);
    ssize_t (*get_failure)(struct fid_mc*, char*, size_t);
    unsigned hosts, sites;  // of the members; 0: not reported by the provider
    unsigned refused;  // bits of enum fi_collective_op refused by the provider for this group, the same on
                       // every member
    unsigned users;    // references to this join; the join stays while there are any
    bool ends;         // no longer used: closed at close_at_s
    bool disposable;   // freed when closed
    double close_at_s;
} MccJoin;

// Adds the join to the provider's list. All fields of the join except rank and size must be zero. The lock is
// held.
void mcc_join_add(MccProvider* p, MccJoin* j);
// Makes the set of the members' addresses, which follow each other in `addresses`. A local step. Returns 0 or
// a positive FI_E code. The key distinguishes joins of the same members that several threads begin at once,
// in a different order on each rank. The secret in the key keeps other processes out of the group. The lock
// is held.
int mcc_join_begin(MccProvider* p, MccJoin* j, void* key, size_t key_bytes, const uint8_t* addresses);
// Joins and waits for the result: 0 or a positive FI_E code. After FI_ETIMEDOUT the join may still be open.
// `step` is called while waiting and returns a positive FI_E code to give up. The lock is not held.
int mcc_join(MccProvider* p, MccJoin* j, int timeout_ms, int (*step)(void* context), void* context);
// Reads the provider's join events. The lock is held.
void mcc_poll_joins(MccProvider* p);
typedef void (*MccEnded)(const void* context, int error, const char* text);
// Reads completions. Calls `ended` for each completion of an operation (not of a join), with 0 or a positive
// FI_E code and the provider's text. Returns the number of completions, or -FI_E if the queue itself failed.
int mcc_poll(MccProvider* p, MccEnded ended);  // the lock is held
// Marks the join as no longer used, to be closed after the linger time. `disposable`: its memory is freed
// when it is closed. The lock is held.
void mcc_join_end(MccProvider* p, MccJoin* j, int linger_ms, bool disposable);
// Closes the joins with an expired linger time, or (`all`) every join. Returns 0 or the provider's last
// error, a positive FI_E code. The lock is held.
int mcc_joins_reap(MccProvider* p, bool all);

#endif
