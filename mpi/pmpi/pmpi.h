// Internal header of libmcastcoll-pmpi.so, the interposer, which is preloaded into programs of any MPI.
//
// MPI libraries without Open MPI's components still have the profiling interface. The interposer defines
// MPI_Bcast and the other functions of calls.c, serves calls over a libfabric provider with collectives where
// possible, and calls PMPI_Bcast and so on otherwise.
//
// Two rules ensure that all members of a communicator use the same side, the provider or MPI.
//   1. The decision which side serves a call depends only on values that are the same on every member of the
//      communicator: the agreed state of the group, and the total bytes, which MPI makes equal (signatures
//      match, counts and datatypes need not), or for reductions the element type and the operator.
//   2. The first call of an interposed operation on a communicator forms its group or leaves it to MPI
//      permanently, for any arguments of the call and any settings of this process. Every member makes the
//      same calls in the same order and so takes part. Agreements are PMPI calls on the program's own
//      communicator: the program is calling a collective on this communicator, so no other collective can be
//      mistaken for an agreement.
//
// Ownership: `pmpi` owns the provider, the addresses and the groups; a communicator's attribute points to its
// group. MPI_Comm_free, MPI_Comm_disconnect and MPI_Finalize are interposed as well and close groups before
// MPI calls the program's delete callbacks, so that collectives in these callbacks are PMPI's on every
// member.

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
#include "core/prepared_call.h"
#include "core/progress_thread.h"
#include "core/provider.h"
#include "core/settings.h"

typedef struct {
    unsigned enabled;  // bit kMccBcast etc.
    char provider[kMccSettingBytes];
    int min_members;
    uint64_t min_bytes, max_bytes;  // total bytes of an operation
    int join_timeout_ms;
    int linger_ms;
    bool progress_thread;
    bool nap;  // a waiting thread may sleep
    int verbose;
} PmpiSettings;

typedef enum { kPmpiServing, kPmpiLeft, kPmpiBroken } PmpiState;

typedef struct PmpiGroup {
    MccJoin join;  // first field
    MPI_Comm comm;
    PmpiState state;
    int64_t number;  // drawn by rank 0, the same on every member: part of the key of the group's set
    MPI_Request idle_receive;  // a receive for which no message is ever sent
    // Packed bytes. The buffer belongs to one call until the call ends in run() of calls.c, which trims the
    // buffer: a small buffer stays for the next call.
    MccBounce bounce;
} PmpiGroup;

typedef enum { kPmpiUnopened, kPmpiOpen, kPmpiClosed } PmpiLife;

typedef struct {
    atomic_int life;  // PmpiLife
    PmpiSettings settings;
    bool ready;   // the provider is open and the settings are valid
    bool stages;  // buffers may be on a device: every message is packed by MPI
    char reason[kMccReasonBytes];
    uint64_t terms;        // digest of the values that must be the same on every member
    MccProvider provider;  // its lock guards the other fields
    MccKeyPair keys;       // key pair of this process, for the transport of group secrets
    MPI_Comm own_comm;     // contains this process only
    int comm_key;
    atomic_llong next_number;
    MccProgressThread thread;
    atomic_ullong served[kMccCollectives], left[kMccCollectives];
} Pmpi;

extern Pmpi pmpi;

// settings.c
bool pmpi_settings_read(PmpiSettings* s, char* reason);
void pmpi_log(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

// progress.c
void pmpi_progress_start(void);      // the lock is held
void pmpi_poll(void);                // reads both queues; the lock is held
int pmpi_progress_mpi(void* group);  // lets MPI make progress; no lock is held
void pmpi_groups_reap(bool all);     // the lock is held

// secret.c
typedef struct {
    MccPublicKey* keys;         // of all members
    MccWrappedSecret* wrapped;  // one entry per member, written by this member
    MccWrappedSecret* all;      // one entry per member, combined from every member
} PmpiSharing;
PmpiSharing* pmpi_sharing_make(int size);  // freed by the caller; NULL: no memory
// Distributes the secret drawn by rank 0 to every member. Returns 0 or a positive FI_E code. FI_EKEYREJECTED:
// the wrapped secret was not for this member, or was altered on its way.
int pmpi_share_secret(const PmpiGroup* g, PmpiSharing* sharing, MccSecret* secret);

// group.c
PmpiGroup* pmpi_group_of(MPI_Comm comm);  // NULL: PMPI must serve the call or report the error
int pmpi_group_left(MPI_Comm comm, int key, void* value, void* extra);
void pmpi_group_break(PmpiGroup* g);  // after a failed operation: no more calls, closed after the linger time
void pmpi_groups_cancel(void);

// layout.c
bool pmpi_packs_plainly(void);  // this MPI's packed form is the plain bytes
bool pmpi_takes_devices(void);  // this MPI accepts buffers in device memory

// life.c
bool pmpi_open(void);  // opens the library at the first call; false: before MPI_Init or after MPI_Finalize

#endif
