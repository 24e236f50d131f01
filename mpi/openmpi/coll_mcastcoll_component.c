// The component: its MCA parameters, when the provider is opened and when everything is closed; and its
// modules, one per communicator: whether it is served at all, and by whom it was served before.
//
// The provider is opened when the first group forms; others than mcastcoll may have to know the whole job
// before that, and are opened with the framework. A failure does not unload the component: its card says why,
// everybody leaves the job to Open MPI's own modules, and rank 0 of MPI_COMM_WORLD says so in one line.
// Whether a communicator could be served is asked when it has shown to be worth it, and decided on what every
// member knows (sizes, cards, hosts), so that no member is alone with it, and nothing is sent.

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/rte/rte.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_var.h"

// Ends every group and closes the provider; the lock is not held.
static void component_stop(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_progress_stop();
    pthread_mutex_lock(&c->fabric.lock);
    mcc_groups_reap(true);
    pthread_mutex_unlock(&c->fabric.lock);
    mcc_provider_close(&c->fabric);
    c->opened = false;
}

static void module_construct(MccModule* m) {
    memset((char*)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
    (void)atomic_fetch_add(&mca_coll_mcastcoll_component.modules, 1);
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
    if (0 == others && ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED) component_stop();
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
    const bool all = MPI_COMM_WORLD == comm;
    if (0 != ompi_comm_rank(comm)) return;
    opal_output_verbose(all ? 0 : 1, all ? 0 : mca_coll_mcastcoll_component.output,
                        "coll/mcastcoll leaves %s to Open MPI's own collectives: it has %d ranks, a group at "
                        "most %zu",
                        comm->c_name, ompi_comm_size(comm), most);
    if (all) MCC_VERBOSE(1, "coll/mcastcoll: decided in %.3f ms", took_s * 1e3);
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

static mca_coll_base_module_t* comm_query(ompi_communicator_t* comm, int* priority) {
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

// A parameter's value unless somebody says otherwise, and what it says of itself.
#define PARAMETER(name, field, type, level, value, help)                                                     \
    do {                                                                                                     \
        c->field = value;                                                                                    \
        (void)mca_base_component_var_register(&c->super.collm_version, name, help, MCA_BASE_VAR_TYPE_##type, \
                                              NULL, 0, 0, OPAL_INFO_LVL_##level,                             \
                                              MCA_BASE_VAR_SCOPE_READONLY, &c->field);                       \
    } while (0)

static int component_register(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    PARAMETER("priority", priority, INT, 6, 90, "Priority of the component; 0 or less switches it off");
    PARAMETER("provider", provider, STRING, 4, "mcastcoll",
              "The libfabric provider to use, any that has FI_COLLECTIVE, for example \"tcp;ofi_rxm\"");
    // What a group costs to form, in what small operations save with it, between two and sixteen hosts.
    PARAMETER("form_after", form_after, INT, 5, 100,
              "Blocking collectives on a communicator that are left to the other components before its group "
              "forms, each 16 KiB of a long one counting as another; 0: it forms at the first");
    // With two members on two hosts a broadcast is one message, and a multicast can only be slower.
    PARAMETER(
        "min_comm_size", min_comm_size, INT, 5, 3,
        "Communicators over several hosts with fewer members are left to the other components (at least 2)");
    PARAMETER("single_host", single_host, INT, 5, 1,
              "Serve communicators whose members all share one host: 1 yes, 0 no, -1 only where "
              "point-to-point has no shared memory of its own (pml cm)");
    PARAMETER("bcast_min_message", bcast_min_message, SIZE_T, 5, 0,
              "Broadcasts of fewer bytes are left to the other components");
    PARAMETER("max_message", max_message, SIZE_T, 5, SIZE_MAX / 2,
              "Messages of more bytes are left to the other components (no bound)");
    PARAMETER(
        "segment", segment, SIZE_T, 9, (size_t)32 << 20,
        "A message of more bytes becomes several operations of the provider, one after the other; gathered "
        "parts of more bytes are left to the other components; less where the provider takes less");
    PARAMETER("enable", enable, STRING, 4, "all",
              "Comma-separated list of the operations to serve, where the provider has them: all, none, "
              "bcast, barrier, allreduce, reduce, allgather, allgatherv, gather, scatter, alltoall, "
              "reduce_scatter, reduce_scatter_block; one with ^ before it is taken out");
    PARAMETER("selection", selection, STRING, 5, "",
              "File of rules \"OPERATION MEMBERS HOSTS BYTES here|previous|measured\", the first that fits "
              "counts: what is left to the other components because they are faster, or found out by trying "
              "both. They come before those built in (all are printed with coll_mcastcoll_verbose 2)");
    PARAMETER("nonblocking", nonblocking, BOOL, 4, true, "Serve the non-blocking forms, too");
    PARAMETER("reduce_scatter_small", reduce_scatter_small, SIZE_T, 9, (size_t)16 << 10,
              "Vectors of up to so many bytes whose parts are not as even as the provider deals them become "
              "an allreduce; larger ones are left to the other components");
    PARAMETER("disable_on_error", disable_on_error, BOOL, 6, false,
              "After a failed operation leave the communicator to the other components, instead of failing "
              "every further operation on it at once");
    PARAMETER("join_timeout", join_timeout_ms, INT, 6, 10000,
              "Milliseconds to wait for a group to form, as long again for every 64 members; then the "
              "communicator is left to the others, and tried again after some thousand collectives");
    PARAMETER("linger", linger_ms, INT, 9, 2000,
              "Milliseconds a group outlives its communicator, so that slower members can still have lost "
              "data repaired");
    PARAMETER("eager_progress", eager_progress, BOOL, 9, false,
              "Poll the provider in every turn of Open MPI's progress loop, not only in every eighth: "
              "quicker repair for others, slower point-to-point");
    PARAMETER("progress_thread", progress_thread, INT, 5, -1,
              "A thread that polls the provider while nobody else does, so that others need not wait for "
              "this process's next MPI call: 1 yes, 0 no, -1 only where point-to-point can block without "
              "Open MPI's progress (pml cm)");
    PARAMETER("verbose", verbose, INT, 8, 0,
              "Verbosity: 0 problems only, 1 decisions per communicator, 5 and above more");
    return OMPI_SUCCESS;
}

// A size such as -5 arrives as a huge number.
static bool check_parameters(MccComponent* c) {
    const struct {
        const char *name, *allowed;
        int64_t value, low, high;
    } numbers[] = {{"min_comm_size", "be 2 or more", c->min_comm_size, 2, INT64_MAX},
                   {"form_after", "not be negative", c->form_after, 0, INT64_MAX},
                   {"single_host", "be -1, 0 or 1", c->single_host, -1, 1},
                   {"progress_thread", "be -1, 0 or 1", c->progress_thread, -1, 1},
                   {"max_message", "be 1 or more", (int64_t)c->max_message, 1, INT64_MAX},
                   {"bcast_min_message", "not be negative", (int64_t)c->bcast_min_message, 0, INT64_MAX},
                   {"segment", "be 64 or more", (int64_t)c->segment, 64, INT64_MAX},
                   {"join_timeout", "be 1 or more", c->join_timeout_ms, 1, INT64_MAX},
                   {"linger", "not be negative", c->linger_ms, 0, INT64_MAX}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        if (numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high) continue;
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_%s is %lld, must %s", numbers[i].name,
                 (long long)numbers[i].value, numbers[i].allowed);
        return false;
    }
    const char* text = NULL != c->enable ? c->enable : "";
    if (!mcc_read_collectives("coll_mcastcoll_enable", text, &c->enabled, c->reason)) return false;
    if (NULL == c->provider || '\0' == c->provider[0]) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_provider is empty");
    } else if (0 == c->enabled) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_enable: no operation is left");
    } else {
        c->rules = mcc_rules_read(c->selection, c->reason);
    }
    return NULL != c->rules;
}

static int component_open(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    // A value that is bad anywhere must not unload the component here only: the others would learn nothing.
    if (c->priority <= 0) return OPAL_ERR_NOT_AVAILABLE;
    const size_t procs = ompi_process_info.num_procs;
    if (procs < 2) return OPAL_ERR_NOT_AVAILABLE;

    c->output = opal_output_open(NULL);
    opal_output_set_verbosity(c->output, c->verbose);
    mcc_peers_init();

    c->ready = check_parameters(c);
    if (c->ready && mcc_fabric_is_eager()) {
        mcc_fabric_open();
        c->ready = c->opened;
    }
    if (c->ready && c->verbose >= 2 && 0 == ompi_process_info.my_name.vpid) mcc_rules_print(c->rules);
    if (OMPI_SUCCESS != mcc_card_publish()) {
        MCC_VERBOSE(1, "coll/mcastcoll: the address could not be published, this process is left out");
    }
    return OMPI_SUCCESS;
}

static int component_init_query(bool progress_threads, bool mpi_threads) {
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

static int component_close(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (0 == c->output) return OMPI_SUCCESS;  // never opened
    component_stop();
    mcc_slots_free();
    mcc_peers_close();
    free(c->rules);
    c->rules = NULL;
    opal_output_close(c->output);
    c->output = 0;
    c->ready = false;
    return OMPI_SUCCESS;
}

MccComponent mca_coll_mcastcoll_component = {
    .super =
        {
            .collm_version =
                {
                    MCA_COLL_BASE_VERSION_2_0_0,
                    .mca_component_name = "mcastcoll",
                    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                          OMPI_RELEASE_VERSION),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
            .collm_init_query = component_init_query,
            .collm_comm_query = comm_query,
        },
    .fabric = {.lock = PTHREAD_MUTEX_INITIALIZER},
};
