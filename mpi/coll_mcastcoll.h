// The private face of the Open MPI coll component: what its files share.
//
// Why it exists: MPI programs get MPI_Bcast and MPI_Barrier over any libfabric provider with FI_COLLECTIVE
// without a changed line. Only public fi_* calls are used, nothing of a particular provider.
//
// Who owns what: the component owns the provider's objects (MccFabric), the peers' cards and every group ever
// joined, so that MPI_Finalize can close all of them in order whatever communicators the program left behind.
// A module (one per communicator) borrows its group and holds references to the modules it falls back to.

#ifndef MCASTCOLL_MPI_COLL_MCASTCOLL_H
#define MCASTCOLL_MPI_COLL_MCASTCOLL_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"
#include "ompi_config.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/threads/mutex.h"
#include "opal/util/output.h"

enum {
    kMccBcast = 1,
    kMccBarrier = 2,
    kMccReasonBytes = 160,
    kMccAddressBytes = 256,
};

// One operation handed to the provider. It lives in its group, not on a stack: a provider may still hold its
// address after an operation was given up.
typedef struct {
    struct fi_context2 context;  // first: completions are recognised by its address
    bool done;
    int error;           // positive FI_E code
    int provider_error;  // for fi_cq_strerror or fi_eq_strerror
    char text[kMccReasonBytes];
} MccOperation;

// A communicator's members as the provider knows them.
typedef struct {
    opal_list_item_t super;
    struct fid_av_set* set;
    struct fid_mc* mc;
    fi_addr_t address;
    bool joined;  // the join ended; until then an event may still name this group
    bool orphan;  // its communicator is gone, close_at says when it may go
    double close_at_s;
    MccOperation join;
    MccOperation operation;
} MccGroup;
OBJ_CLASS_DECLARATION(MccGroup);

typedef enum {
    kMccFresh,    // no collective yet
    kMccServing,  // the group serves this communicator
    kMccLeft,     // the previous modules serve it for ever
    kMccBroken,   // an operation failed
} MccModuleState;

typedef struct {
    mca_coll_base_module_t super;
    MccModuleState state;
    MccGroup* group;
    void* bounce;  // packed bytes of derived datatypes
    size_t bounce_bytes;
    mca_coll_base_module_bcast_fn_t previous_bcast;
    mca_coll_base_module_t* previous_bcast_module;
    mca_coll_base_module_barrier_fn_t previous_barrier;
    mca_coll_base_module_t* previous_barrier_module;
    mca_coll_base_module_allreduce_fn_t previous_allreduce;
    mca_coll_base_module_t* previous_allreduce_module;
} MccModule;
OBJ_CLASS_DECLARATION(MccModule);

typedef struct {
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_domain* domain;
    struct fid_eq* eq;
    struct fid_cq* cq;
    struct fid_av* av;
    struct fid_ep* ep;
    size_t max_members;
    int broken;  // positive FI_E code once the completion queue itself failed
} MccFabric;

typedef struct {
    mca_coll_base_component_t super;

    // MCA parameters
    int priority;
    char* provider;
    int min_comm_size;
    int single_host;
    size_t bcast_min_message;
    size_t max_message;
    size_t segment;
    char* enable;
    bool disable_on_error;
    bool eager_progress;
    int join_timeout_ms;
    int linger_ms;
    int verbose;

    // state
    int output;
    int enabled;                   // kMccBcast | kMccBarrier
    uint64_t terms;                // digest of all that must be the same everywhere
    bool ready;                    // the provider is open
    char reason[kMccReasonBytes];  // why it is not
    bool reported;
    opal_mutex_t lock;  // guards all below and every fi_* call
    MccFabric fabric;
    opal_hash_table_t peers;  // process name -> MccPeer*
    opal_list_t groups;
    int orphans;
    bool polling;        // the progress callback is registered
    atomic_int waiting;  // threads that poll by themselves
} MccComponent;

// The one exported symbol.
OMPI_MODULE_DECLSPEC extern MccComponent mca_coll_mcastcoll_component;

// coll_mcastcoll_fabric.c
bool mcc_fabric_open(MccFabric* fabric, const char* provider, size_t peers, char* reason);
void mcc_fabric_close(MccFabric* fabric);
int mcc_fabric_poll(void);          // reads completions; the lock is held
void mcc_fabric_poll_events(void);  // reads the event queue; the lock is held
int mcc_progress(void);             // opal_progress callback
void mcc_wait_step(void);           // one turn of a waiting loop; the lock is not held
double mcc_now_s(void);

// coll_mcastcoll_peers.c
void mcc_peers_init(void);
void mcc_peers_close(void);
int mcc_card_publish(void);
bool mcc_peers_agree(ompi_communicator_t* comm, char* reason);
int mcc_peers_address(ompi_communicator_t* comm, int rank,
                      fi_addr_t* address);  // positive FI_E code; the lock is held

// coll_mcastcoll_group.c
int mcc_group_setup(MccModule* module, ompi_communicator_t* comm);
void mcc_group_orphan(MccGroup* group);
void mcc_groups_reap(bool all);  // the lock is held

// coll_mcastcoll_module.c
mca_coll_base_module_t* mcc_comm_query(ompi_communicator_t* comm, int* priority);

// coll_mcastcoll_ops.c
int mcc_bcast(void* buffer, int count, struct ompi_datatype_t* datatype, int root, ompi_communicator_t* comm,
              mca_coll_base_module_t* module);
int mcc_barrier(ompi_communicator_t* comm, mca_coll_base_module_t* module);

#define MCC_VERBOSE(level, ...) opal_output_verbose(level, mca_coll_mcastcoll_component.output, __VA_ARGS__)

#endif
