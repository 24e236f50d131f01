// A communicator's way into the provider and out of it: the set of its members' addresses, the join, the end.
//
// A group outlives its communicator for the linger time: MPI_Comm_free need not synchronise, and a slower
// member may still need its data repaired.
//
// Who owns what: a join owns its set and its multicast group. It is the first member of a face's group, whose
// memory goes with it. Until the provider says that it ended it may still name the join, so that one that was
// given up must stay where it is.

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
    unsigned sites;   // of its members
    unsigned users;   // what still names it: it stays meanwhile
    bool ends;        // nobody will use it any more: it is closed at close_at_s
    bool disposable;  // and freed
    double close_at_s;
} MccJoin;

// The provider knows it from now on. All of it is 0, and calloc()ed. The lock is held.
void mcc_join_add(MccProvider* p, MccJoin* j);
// The set, locally: 0, or a positive FI_E code. `address_of` finds a member's, or NULL. The key tells apart
// what several threads join at once, in another order on each rank, with the same members. The lock is held.
int mcc_join_begin(MccProvider* p, MccJoin* j, size_t members, void* key, size_t key_bytes,
                   const uint8_t* (*address_of)(const void* who, size_t rank), const void* who);
// Joins, and waits for the end: 0, or a positive FI_E code; FI_ETIMEDOUT may leave it open. Many ranks come
// to a join one after the other, when there are few cores for them: for every 64 the time is as long again.
// `step`: what a member does while it waits; a positive FI_E code where there is no use in waiting on. The
// lock is not held.
int mcc_join(MccProvider* p, MccJoin* j, size_t members, int timeout_ms, int (*step)(void* who), void* who);
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

#endif
