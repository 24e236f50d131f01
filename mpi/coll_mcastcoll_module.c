// One module per communicator: whether it is served at all, and by whom it was served before.
//
// The decision here uses only what every member knows (sizes, cards, hosts), so no member is alone with it;
// nothing is sent. The group itself forms at the first collective, see coll_mcastcoll_group.c.

#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"

static void module_construct(MccModule* m) {
    memset((char*)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
    m->state = kMccFresh;
}

static void module_destruct(MccModule* m) {
    if (NULL != m->group) mcc_group_orphan(m->group);
    m->group = NULL;
    free(m->bounce);
    if (NULL != m->previous_bcast_module) OBJ_RELEASE(m->previous_bcast_module);
    if (NULL != m->previous_barrier_module) OBJ_RELEASE(m->previous_barrier_module);
    if (NULL != m->previous_allreduce_module) OBJ_RELEASE(m->previous_allreduce_module);
}

OBJ_CLASS_INSTANCE(MccModule, mca_coll_base_module_t, module_construct, module_destruct);

// Modules are enabled from the lowest priority up: what the communicator holds now is what served before us.
static int module_enable(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
    MccModule* m = (MccModule*)module;
    mca_coll_base_comm_coll_t* held = comm->c_coll;
    if (NULL == held->coll_bcast_module || NULL == held->coll_barrier_module ||
        NULL == held->coll_allreduce_module) {
        MCC_VERBOSE(1, "coll/mcastcoll: nobody to fall back to on %s", comm->c_name);
        return OMPI_ERROR;
    }
    m->previous_bcast = held->coll_bcast;
    m->previous_bcast_module = held->coll_bcast_module;
    m->previous_barrier = held->coll_barrier;
    m->previous_barrier_module = held->coll_barrier_module;
    m->previous_allreduce = held->coll_allreduce;
    m->previous_allreduce_module = held->coll_allreduce_module;
    OBJ_RETAIN(m->previous_bcast_module);
    OBJ_RETAIN(m->previous_barrier_module);
    OBJ_RETAIN(m->previous_allreduce_module);
    return OMPI_SUCCESS;
}

// Members known to be on this host are on this host for each other, so all members get the same answer.
static bool all_on_one_host(ompi_communicator_t* comm) {
    for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
        const ompi_proc_t* proc = ompi_group_peer_lookup_existing(comm->c_local_group, rank);
        if (NULL == proc) return false;  // not met yet: only remote processes are met late
        if (proc != ompi_proc_local() && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) return false;
    }
    return true;
}

static bool serve_single_host(const MccComponent* c) {
    if (c->single_host >= 0) return 1 == c->single_host;
    return 0 == strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, "cm");
}

// The one line a user sees when nothing can be served: from rank 0 of MPI_COMM_WORLD, once.
static void report_off(MccComponent* c, ompi_communicator_t* comm, const char* reason) {
    if (MPI_COMM_WORLD == comm && 0 == ompi_comm_rank(comm) && !c->reported) {
        c->reported = true;
        opal_output(0, "coll/mcastcoll is off, Open MPI's own collectives serve this job: %s", reason);
    } else if (0 == ompi_comm_rank(comm)) {
        MCC_VERBOSE(1, "coll/mcastcoll: %s is left to others: %s", comm->c_name, reason);
    }
}

mca_coll_base_module_t* mcc_comm_query(ompi_communicator_t* comm, int* priority) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    char reason[kMccReasonBytes] = "";
    *priority = -1;
    if (OMPI_COMM_IS_INTER(comm)) return NULL;
    const int size = ompi_comm_size(comm);
    if (size < 2 || size < c->min_comm_size) return NULL;
    if (!c->ready && MPI_COMM_WORLD != comm) return NULL;
    if (!mcc_peers_agree(comm, reason)) {
        report_off(c, comm, reason);
        return NULL;
    }
    if ((size_t)size > c->fabric.max_members) {
        if (0 == ompi_comm_rank(comm)) {
            MCC_VERBOSE(1, "coll/mcastcoll: %s is left to others: %d members, the provider takes %zu",
                        comm->c_name, size, c->fabric.max_members);
        }
        return NULL;
    }
    if (!serve_single_host(c) && all_on_one_host(comm)) {
        if (0 == ompi_comm_rank(comm)) {
            MCC_VERBOSE(1,
                        "coll/mcastcoll: %s is left to others: all on one host (coll_mcastcoll_single_host)",
                        comm->c_name);
        }
        return NULL;
    }
    MccModule* m = OBJ_NEW(MccModule);
    if (NULL == m) return NULL;
    m->super.coll_module_enable = module_enable;
    if (c->enabled & kMccBcast) m->super.coll_bcast = mcc_bcast;
    if (c->enabled & kMccBarrier) m->super.coll_barrier = mcc_barrier;
    *priority = c->priority;
    return &m->super;
}
