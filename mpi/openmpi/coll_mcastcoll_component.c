// The component: MCA parameters, opening and closing of the provider, and the modules, one per communicator,
// which decide whether a communicator can be served and store the previous modules.
//
// The provider mcastcoll is opened when the first group forms. Other providers may need the addresses of the
// whole job before their first group, and are opened with the framework. A failure does not unload the
// component: the process's modex record (the data that Open MPI passes to every process) contains the reason,
// every process leaves the job to Open MPI's own modules, and rank 0 of MPI_COMM_WORLD prints one line.
// Whether a communicator can be served is decided when it has made enough calls, from data known to every
// member (sizes, modex records, hosts), so that the members decide alike without a message.

#include "coll_mcastcoll.h"
#include "ompi/runtime/mpiruntime.h"

// Closes every group and the provider. The lock is not held.
static void component_stop(void) {
    MccComponent* c = &mcc_component;
    mcc_progress_stop();
    pthread_mutex_lock(&c->fabric.lock);
    mcc_groups_reap(true);
    pthread_mutex_unlock(&c->fabric.lock);
    mcc_provider_close(&c->fabric);
    c->opened = false;
}

static void module_construct(MccModule* m) {
    memset((char*)m + sizeof(m->super), 0, sizeof(*m) - sizeof(m->super));
    (void)atomic_fetch_add(&mcc_component.modules, 1);
}

// In MPI_Finalize, the last module closes the provider, before Open MPI closes its point-to-point layer:
// mtl/ofi installs a memory monitor in libfabric and removes it when mtl/ofi closes, but libfabric's
// registration caches call the monitor until they are closed with the provider.
static void module_destruct(MccModule* m) {
    if (NULL != m->group) mcc_group_orphan(m->group);
    m->group = NULL;
    mcc_bounce_trim(&m->bounce, 0);
    mcc_select_free(m);
    mcc_previous_release(m);
    const int left = atomic_fetch_sub(&mcc_component.modules, 1) - 1;
    if (0 == left && ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED) component_stop();
}

OBJ_CLASS_INSTANCE(MccModule, mca_coll_base_module_t, module_construct, module_destruct);

// Enables the module of a communicator. A group always needs the allreduce, bcast and allgather of the
// previous modules.
static int module_enable(mca_coll_base_module_t* module, ompi_communicator_t* comm) {
    MccModule* m = (MccModule*)module;
    if (NULL == comm->c_coll->coll_allreduce_module || NULL == comm->c_coll->coll_bcast_module ||
        NULL == comm->c_coll->coll_allgather_module) {
        MCC_VERBOSE(1,
                    "coll/mcastcoll does not serve %s: no other component has the allreduce, bcast and "
                    "allgather that it needs",
                    comm->c_name);
        return OMPI_ERROR;
    }
    mcc_previous_keep(m, comm);
    return OMPI_SUCCESS;
}

// Reports a communicator with too many members for a group. The component still serves smaller communicators.
// Without coll_mcastcoll_verbose, the user sees the line only if it concerns the whole job.
static void report_too_large(ompi_communicator_t* comm, size_t max, double took_s) {
    const bool all = MPI_COMM_WORLD == comm;
    if (0 != ompi_comm_rank(comm)) return;
    opal_output_verbose(all ? 0 : 1, all ? 0 : mcc_component.output,
                        "coll/mcastcoll leaves %s to Open MPI's own collectives: it has %d ranks, but a "
                        "group has at most %zu",
                        comm->c_name, ompi_comm_size(comm), max);
    if (all) MCC_VERBOSE(1, "coll/mcastcoll: the decision on MPI_COMM_WORLD took %.3f ms", took_s * 1e3);
}

// Returns whether an info key of the communicator names other components as wanted. coll/han sets the key for
// its own communicators, and ignores errors of their collectives. 512 bytes are more than all component names
// together.
static bool prefers_another(const ompi_communicator_t* comm) {
    char wanted[512] = "";
    return mcc_info(comm, "ompi_comm_coll_preference", wanted, sizeof(wanted)) &&
           NULL == strstr(wanted, "mcastcoll");
}

static mca_coll_base_module_t* comm_query(ompi_communicator_t* comm, int* priority) {
    MccComponent* c = &mcc_component;
    const double begun_s = mcc_now_s();
    *priority = -1;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || prefers_another(comm)) return NULL;
    if (!c->ready) {
        mcc_report_off(comm, c->reason);
        return NULL;
    }
    if (mcc_may_revoke()) {
        mcc_report_off(comm, "operations of a group cannot be revoked, which MPI's fault tolerance requires");
        return NULL;
    }
    // The provider mcastcoll is opened later, but its limit is a constant.
    const size_t max = mcc_fabric_is_eager() ? c->fabric.max_members : FI_MCASTCOLL_MAX_MEMBERS;
    if ((size_t)ompi_comm_size(comm) > max) {
        report_too_large(comm, max, mcc_now_s() - begun_s);
        return NULL;
    }
    mcc_watch_windows();
    MccModule* m = OBJ_NEW(MccModule);
    if (NULL == m) return NULL;
    m->wanted = (size_t)c->form_after;
    m->super.coll_module_enable = module_enable;
    // Also offers the collectives that are not enabled: they go to the previous modules, but must fail once
    // the group has failed.
    for (int i = 0; i < kMccCollectives; ++i)
        for (int form = 0; form < kMccForms; ++form) mcc_offer(m, form, i, mcc_entry(i, form));
    *priority = c->priority;
    return &m->super;
}

OMPI_DECLSPEC extern mca_coll_base_component_t mca_coll_mcastcoll_component;

static int component_register(void) {
    mcc_settings_register(&mca_coll_mcastcoll_component.collm_version);
    mcc_variables_register(&mca_coll_mcastcoll_component.collm_version);
    return OMPI_SUCCESS;
}

static int component_open(void) {
    MccComponent* c = &mcc_component;
    // A parameter that is invalid only on this process must not unload the component: the other processes
    // must learn of the error.
    if (c->priority <= 0) return OPAL_ERR_NOT_AVAILABLE;
    const size_t procs = ompi_process_info.num_procs;
    if (procs < 2) return OPAL_ERR_NOT_AVAILABLE;

    c->output = opal_output_open(NULL);
    opal_output_set_verbosity(c->output, c->verbose);
    c->has_accelerator = mcc_has_accelerator();
    if (mcc_settings_check()) c->rules = mcc_rules_read(c->selection, c->reason);
    c->ready = NULL != c->rules;
    if (c->ready && mcc_fabric_is_eager()) {
        mcc_fabric_open();
        c->ready = c->opened;
    }
    if (c->ready && c->verbose >= 2 && 0 == ompi_process_info.my_name.vpid) mcc_rules_print(c->rules);
    if (OMPI_SUCCESS != mcc_peers_open()) {
        MCC_VERBOSE(1,
                    "coll/mcastcoll: cannot publish the address of this process: its communicators use Open "
                    "MPI's own collectives");
    }
    return OMPI_SUCCESS;
}

static int component_init_query(bool progress_threads, bool mpi_threads) {
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

static int component_close(void) {
    MccComponent* c = &mcc_component;
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

mca_coll_base_component_t mca_coll_mcastcoll_component = {
    .collm_version =
        {
            MCC_COLL_VERSION,
            .mca_component_name = "mcastcoll",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = component_init_query,
    .collm_comm_query = comm_query,
};
