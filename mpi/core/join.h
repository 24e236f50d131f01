// A communicator's way into the provider and out of it: the set of its members' addresses, the join, the end.
//
// Who owns what: a join owns its set and its multicast group. Until the provider says that it ended it may
// still name the join, so that one that was given up must stay where it is: mcc_join_is_open(). The provider
// knows all that were begun and not closed.

#ifndef MCASTCOLL_MPI_CORE_JOIN_H
#define MCASTCOLL_MPI_CORE_JOIN_H

#include "core/provider.h"

typedef struct MccJoin {
    struct MccJoin* next;
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
    unsigned sites;  // of its members
} MccJoin;

// What a member does while it waits, without the lock that guards the provider.
typedef struct {
    void (*lock)(void);
    void (*unlock)(void);
    int (*step)(void* who);  // a positive FI_E code where there is no use in waiting on
} MccWaiting;

// The set, locally: 0, or a positive FI_E code. `address_of` finds a member's. The key tells apart what
// several threads join at once, in another order on each rank, with the same members. The lock is held.
int mcc_join_begin(MccProvider* p, MccJoin* j, size_t members, void* key, size_t key_bytes,
                   int (*address_of)(const void* who, size_t rank, fi_addr_t* address), const void* who);
// Joins, and waits for the end: 0, or a positive FI_E code; FI_ETIMEDOUT may leave it open. Many ranks come
// to a join one after the other, when there are few cores for them: for every 64 the time is as long again.
int mcc_join(MccProvider* p, MccJoin* j, size_t members, int timeout_ms, const MccWaiting* w, void* who);
// Reads what the provider says about joins. The lock is held.
void mcc_poll_joins(MccProvider* p);
// The join that an event or a completion names, or NULL. The lock is held.
MccJoin* mcc_find_join(const MccProvider* p, const struct fid* fid, const void* context);
// 0, or a positive FI_E code. The lock is held.
int mcc_join_close(MccProvider* p, MccJoin* j);

static inline bool mcc_join_is_open(const MccJoin* j) {
    return j->posted && !j->done;
}

#endif
