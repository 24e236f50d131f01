// One module per communicator: whether it is served at all, and by whom it was served before.
//
// Most communicators are hardly used, so little is done when one comes to be. Whether it could be served is
// asked when it has shown to be worth it, see coll_mcastcoll_group.c; that uses only what every member knows
// (sizes, cards, hosts), so no member is alone with it, and nothing is sent.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"

static void module_construct(MccModule* m) {
    memset((char*)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
    (void)atomic_fetch_add(&mca_coll_mcastcoll_component.modules, 1);
    m->state = kMccFresh;
}

static void release(mca_coll_base_module_t* module) {
    if (NULL != module) OBJ_RELEASE(module);
}

// In MPI_Finalize the provider closes with the last of them, before Open MPI's point-to-point does: mtl/ofi
// hands libfabric a monitor of memory, takes it away when it closes, and libfabric's caches of registered
// memory call it until they close.
static void module_destruct(MccModule* m) {
    if (NULL != m->group) mcc_group_orphan(m->group);
    m->group = NULL;
    mcc_bounce_trim(&m->bounce, 0);
    mcc_select_free(m);
    for (int form = 0; form < kMccForms; ++form)
        for (int i = 0; i < kMccCollectives; ++i) release(m->previous[form][i].module);
    const int others = atomic_fetch_sub(&mca_coll_mcastcoll_component.modules, 1) - 1;
    if (0 == others && ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED) mcc_component_stop();
}

OBJ_CLASS_INSTANCE(MccModule, mca_coll_base_module_t, module_construct, module_destruct);

typedef void (*Function)(void);

// Where Open MPI's structures have a collective's two forms.
static const struct {
    size_t in_module, held, held_module;  // offsets
} kFields[kMccCollectives][kMccForms] = {
#define MCC_FIELD(field)                                                                     \
    {                                                                                        \
        offsetof(mca_coll_base_module_t, field), offsetof(mca_coll_base_comm_coll_t, field), \
            offsetof(mca_coll_base_comm_coll_t, field##_module)                              \
    }
#define MCC_FIELDS(enumerator, name, collective) \
    [enumerator] = {MCC_FIELD(coll_##name), MCC_FIELD(coll_i##name)},
    MCC_COLLECTIVES(MCC_FIELDS)};

static void offer(MccModule* m, int collective, int form, Function function) {
    memcpy((char*)&m->super + kFields[collective][form].in_module, &function, sizeof(function));
}

// Modules are enabled from the lowest priority up: what the communicator holds now is what served before us.
// What nobody served is not served here either. The allgather is needed in any case, for addresses.
static int module_enable(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
    MccModule* m = (MccModule*)module;
    const char* held = (const char*)comm->c_coll;
    if (NULL == comm->c_coll->coll_allgather_module) {
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

bool mcc_pml_is(const char* name) {
    return 0 == strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, name);
}

static bool serve_single_host(const MccComponent* c) {
    if (c->single_host >= 0) return 1 == c->single_host;
    return mcc_pml_is("cm");
}

static bool is_left(ompi_communicator_t* comm, const char* reason) {
    if (0 == ompi_comm_rank(comm))
        MCC_VERBOSE(1, "coll/mcastcoll: %s is left to others: %s", comm->c_name, reason);
    return false;
}

// The one line a user sees when nothing can be served, once.
void mcc_report_off(ompi_communicator_t* comm, const char* reason) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (MPI_COMM_WORLD != comm) {
        (void)is_left(comm, reason);
    } else if (0 == ompi_comm_rank(comm) && !c->reported) {
        c->reported = true;
        opal_output(0, "coll/mcastcoll is off, Open MPI's own collectives serve this job: %s", reason);
    }
}

// Smaller communicators are served all the same. As above, a user hears of the whole job only.
static void report_too_large(ompi_communicator_t* comm, size_t most, double took_s) {
    char text[kMccReasonBytes];
    if (0 != ompi_comm_rank(comm)) return;
    snprintf(text, sizeof(text), "%.64s to Open MPI's own collectives: it has %d ranks, a group at most %zu",
             comm->c_name, ompi_comm_size(comm), most);
    if (MPI_COMM_WORLD == comm) {
        opal_output(0, "coll/mcastcoll leaves %s", text);
        MCC_VERBOSE(1, "coll/mcastcoll: decided in %.3f ms", took_s * 1e3);
    } else {
        MCC_VERBOSE(1, "coll/mcastcoll leaves %s", text);
    }
}

bool mcc_module_fits(MccModule* m, ompi_communicator_t* comm) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    char reason[kMccReasonBytes] = "";
    const int size = ompi_comm_size(comm);
    const bool one_host = all_on_one_host(comm);
    if (!one_host && size < c->min_comm_size)
        return is_left(comm, "few members (coll_mcastcoll_min_comm_size)");
    if (!mcc_peers_agree(comm, reason)) {
        mcc_report_off(comm, reason);
        return false;
    }
    if (one_host && !serve_single_host(c))
        return is_left(comm, "all on one host (coll_mcastcoll_single_host)");
    m->hosts = one_host ? 1 : mcc_peers_hosts(comm);
    // Two hosts at least, though they may have one name.
    if (!one_host && m->hosts < 2) m->hosts = 2;
    return mcc_select(c->rules, m, size);
}

mca_coll_base_module_t* mcc_comm_query(ompi_communicator_t* comm, int* priority) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const double begun_s = mcc_now_s();
    *priority = -1;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
    if (!c->ready) {
        mcc_report_off(comm, c->reason);
        return NULL;
    }
    // Our own provider is opened later, but its limit is known.
    const size_t most = mcc_fabric_is_eager() ? c->fabric.max_members : FI_MCASTCOLL_MAX_MEMBERS;
    if ((size_t)ompi_comm_size(comm) > most) {
        report_too_large(comm, most, mcc_now_s() - begun_s);
        return NULL;
    }
    MccModule* m = OBJ_NEW(MccModule);
    if (NULL == m) return NULL;
    m->wanted = (size_t)c->form_after;
    m->super.coll_module_enable = module_enable;
    for (int i = 0; i < kMccCollectives; ++i) {
        if (0 == (c->enabled >> i & 1)) continue;
        for (int form = 0; form < (c->nonblocking ? kMccForms : kMccNonblocking); ++form)
            offer(m, i, form, mcc_entry(i, form));
    }
    *priority = c->priority;
    return &m->super;
}
