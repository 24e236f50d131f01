// One module per communicator: whether it is served at all, and by whom it was served before.
//
// The decision here uses only what every member knows (sizes, cards, hosts), so no member is alone with it;
// nothing is sent. The group itself forms at the first collective, see coll_mcastcoll_group.c.

#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "coll_mcastcoll_select.h"
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

static void release(mca_coll_base_module_t* module) {
    if (NULL != module) OBJ_RELEASE(module);
}

static void module_destruct(MccModule* m) {
    if (NULL != m->group) mcc_group_orphan(m->group);
    m->group = NULL;
    free(m->bounce);
    mcc_select_free(m);
    for (int form = 0; form < kMccForms; ++form)
        for (int i = 0; i < kMccCollectives; ++i) release(m->previous[form][i].module);
}

OBJ_CLASS_INSTANCE(MccModule, mca_coll_base_module_t, module_construct, module_destruct);

typedef void (*Function)(void);

#define MCC_NAME(enumerator, name) [enumerator] = #name,
const char* const mcc_collective_names[kMccCollectives] = {MCC_COLLECTIVES(MCC_NAME)};

// Where Open MPI's structures have a collective's two forms.
static const struct {
    size_t in_module, held, held_module;  // offsets
} kFields[kMccCollectives][kMccForms] = {
#define MCC_FIELD(field)                                                                     \
    {                                                                                        \
        offsetof(mca_coll_base_module_t, field), offsetof(mca_coll_base_comm_coll_t, field), \
            offsetof(mca_coll_base_comm_coll_t, field##_module)                              \
    }
#define MCC_FIELDS(enumerator, name) [enumerator] = {MCC_FIELD(coll_##name), MCC_FIELD(coll_i##name)},
    MCC_COLLECTIVES(MCC_FIELDS)};

static void offer(MccModule* m, int collective, int form, Function function) {
    memcpy((char*)&m->super + kFields[collective][form].in_module, &function, sizeof(function));
}

// Modules are enabled from the lowest priority up: what the communicator holds now is what served before us.
// What nobody served is not served here either. The allreduce is needed in any case, for agreements.
static int module_enable(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
    MccModule* m = (MccModule*)module;
    const char* held = (const char*)comm->c_coll;
    if (NULL == comm->c_coll->coll_allreduce_module) {
        MCC_VERBOSE(1, "coll/mcastcoll: nobody to fall back to on %s", comm->c_name);
        return OMPI_ERROR;
    }
    for (int i = 0; i < kMccCollectives; ++i) {
        for (int form = 0; form < kMccForms; ++form) {
            MccPrevious* previous = &m->previous[form][i];
            memcpy(&previous->function, held + kFields[i][form].held, sizeof(previous->function));
            memcpy(&previous->module, held + kFields[i][form].held_module, sizeof(previous->module));
            if (NULL == previous->module) {
                offer(m, i, form, NULL);
            } else {
                OBJ_RETAIN(previous->module);
            }
        }
    }
    return OMPI_SUCCESS;
}

// Which of the provider's collectives serve it, one of them at least.
static unsigned served_by(int collective) {
    switch ((MccCollective)collective) {
        case kMccBcast:
            return 1U << FI_BROADCAST;
        case kMccBarrier:
            return 1U << FI_BARRIER;
        case kMccAllreduce:
            return 1U << FI_ALLREDUCE;
        case kMccReduce:
            return 1U << FI_REDUCE;
        case kMccAllgather:
        case kMccAllgatherv:
            return 1U << FI_ALLGATHER;
        case kMccGather:
            return 1U << FI_GATHER;
        case kMccScatter:
            return 1U << FI_SCATTER;
        case kMccAlltoall:
            return 1U << FI_ALLTOALL;
        case kMccReduceScatter:
        case kMccReduceScatterBlock:
            return 1U << FI_REDUCE_SCATTER | 1U << FI_ALLREDUCE;
        case kMccCollectives:
            break;
    }
    return 0;
}

// The same answer on all members. More members than this host has of the job cannot all be here, and only
// where they can are all processes looked up: Open MPI does not know them before somebody asks.
static bool all_on_one_host(ompi_communicator_t* comm) {
    const int size = ompi_comm_size(comm);
    if (size > (int)ompi_process_info.num_local_peers + 1) return false;
    for (int rank = 0; rank < size; ++rank) {
        const ompi_proc_t* proc = ompi_group_peer_lookup(comm->c_local_group, rank);
        if (NULL == proc) return false;
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
    if (size < 2) return NULL;
    const bool one_host = all_on_one_host(comm);
    if (!one_host && size < c->min_comm_size) return NULL;
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
    if (one_host && !serve_single_host(c)) {
        if (0 == ompi_comm_rank(comm)) {
            MCC_VERBOSE(1,
                        "coll/mcastcoll: %s is left to others: all on one host (coll_mcastcoll_single_host)",
                        comm->c_name);
        }
        return NULL;
    }
    MccModule* m = OBJ_NEW(MccModule);
    if (NULL == m) return NULL;
    m->hosts = one_host ? 1 : mcc_peers_hosts(comm);
    // Two hosts at least, though they may have one name.
    if (!one_host && m->hosts < 2) m->hosts = 2;
    if (!mcc_select(c->rules, m, size)) {
        OBJ_RELEASE(m);
        return NULL;
    }
    m->super.coll_module_enable = module_enable;
    for (int i = 0; i < kMccCollectives; ++i) {
        if (0 == (c->enabled >> i & 1) || 0 == (c->offered & served_by(i))) continue;
        for (int form = 0; form < (c->nonblocking ? kMccForms : kMccNonblocking); ++form)
            offer(m, i, form, mcc_entry(i, form));
    }
    *priority = c->priority;
    return &m->super;
}
