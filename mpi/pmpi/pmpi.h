// The private face of libmcastcoll-pmpi.so, which a program of any MPI is preloaded with: what its files
// share.
//
// Why it exists: other MPIs than Open MPI have no components to plug into, but all have the profiling
// interface. The library defines MPI_Bcast and the others of calls.c, serves what it can over a libfabric
// provider with collectives, and calls PMPI_Bcast and so on for the rest.
//
// Two rules make it safe.
//   1. Who serves a call is decided only on what is the same on all members of the communicator: its group's
//      state, which has been agreed on, and total bytes, which the standard makes equal (signatures are,
//      counts and datatypes need not be), or for reductions what the element is and the operator does.
//   2. The first call of an interposed operation on a communicator makes its group or leaves it for ever,
//      whatever the call's arguments and this process's settings. All members make the same calls in the same
//      order, so they all take part. Agreements are PMPI calls on the program's own communicator: a
//      collective is being called on it anyway, so no other one can be mistaken for ours.
//
// Who owns what: `pmpi` owns the provider, the addresses and all groups; a communicator's attribute points to
// its group. MPI_Comm_free, MPI_Comm_disconnect and MPI_Finalize are interposed, too: they close groups
// before MPI calls the program's delete callbacks, so that collectives in these are PMPI's on all members.

#ifndef MCASTCOLL_MPI_PMPI_H
#define MCASTCOLL_MPI_PMPI_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/descriptors.h"
#include "core/plan.h"
#include "core/provider.h"

typedef struct {
    unsigned enabled;  // bit kMccBcast and so on
    char provider[64];
    int min_members;
    uint64_t min_bytes, max_bytes;  // of a whole operation's message
    int join_timeout_ms;
    int linger_ms;
    bool progress_thread;
    bool nap;  // may a waiting thread sleep
    int verbose;
} PmpiSettings;

typedef enum { kPmpiServing, kPmpiLeft, kPmpiBroken } PmpiState;

typedef struct PmpiGroup {
    MccJoin join;  // first
    MPI_Comm comm;
    PmpiState state;
    int64_t number;     // rank 0's, the same on all members: the key of the group's set
    MPI_Request never;  // a receive that nobody sends anything for
    // Packed bytes. It belongs to one call, until that ends in run() of calls.c, which trims it: a small one
    // stays for the next call.
    MccBounce bounce;
} PmpiGroup;

typedef enum { kPmpiUnopened, kPmpiOpen, kPmpiClosed } PmpiLife;

typedef struct {
    atomic_int life;  // PmpiLife
    PmpiSettings settings;
    bool ready;   // the provider is open and the settings are good
    bool stages;  // buffers may be on a device: all messages go by way of MPI's packing
    char reason[kMccReasonBytes];
    uint64_t terms;        // digest of all that must be the same everywhere
    MccProvider provider;  // its lock guards all of this
    MccKeyPair keys;       // secrets for this process are encrypted for it
    MPI_Comm own_comm;     // of this process alone
    int comm_key;
    atomic_llong next_number;
    MccStandIn stand_in;
    atomic_ullong served[kMccCollectives], left[kMccCollectives];
} Pmpi;

extern Pmpi pmpi;

// settings.c
bool pmpi_settings_read(PmpiSettings* s, char* reason);
void pmpi_say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

// progress.c
void pmpi_progress_start(void);   // the lock is held
void pmpi_poll(void);             // reads both queues; the lock is held
int pmpi_meanwhile(void* group);  // lets MPI go on; no lock is held
void pmpi_groups_reap(bool all);  // the lock is held

// secret.c
typedef struct {
    MccPublicKey* keys;               // of all members
    MccWrappedSecret *wrapped, *all;  // room for as many: by this member, and by all
} PmpiSharing;
PmpiSharing* pmpi_sharing_make(int size);  // to be freed; NULL: no memory
// Gives rank 0's secret, which rank 0 has drawn, to all members. 0, or a positive FI_E code: FI_EKEYREJECTED
// where the secret for this member was not for it, or was changed on its way.
int pmpi_share_secret(const PmpiGroup* g, PmpiSharing* sharing, MccSecret* secret);

// group.c
PmpiGroup* pmpi_group_of(MPI_Comm comm);  // NULL: PMPI serves, or complains
int pmpi_group_left(MPI_Comm comm, int key, void* value, void* extra);
void pmpi_group_break(PmpiGroup* g);  // an operation failed: the group is closed soon, and serves no more
void pmpi_groups_cancel(void);

// layout.c
bool pmpi_packs_plainly(void);  // this MPI's packed form is the bytes, and nothing else
bool pmpi_takes_devices(void);  // this MPI takes buffers in the memory of devices

// life.c
bool pmpi_open(void);  // false: MPI is not there yet or no more; opens everything at the first call

#endif
