// The component: its MCA parameters, when the provider is opened and when everything is closed.
//
// The provider is opened when the first group forms: a job that needs none pays nothing for it. Others than
// mcastcoll may have to know the whole job before that, so they are opened when the framework opens its
// components, and their addresses are in the modex. A failure does not unload the component: its card says
// why, everybody leaves the job to Open MPI's own modules, and rank 0 of MPI_COMM_WORLD says so in one line.

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "coll_mcastcoll_select.h"
#include "ompi/constants.h"
#include "ompi/mca/rte/rte.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init_query(bool progress_threads, bool mpi_threads);

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
            .collm_comm_query = mcc_comm_query,
        },
    .fabric = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static void register_one(const char* name, const char* help, mca_base_var_type_t type,
                         mca_base_var_info_lvl_t level, void* storage) {
    (void)mca_base_component_var_register(&mca_coll_mcastcoll_component.super.collm_version, name, help, type,
                                          NULL, 0, 0, level, MCA_BASE_VAR_SCOPE_READONLY, storage);
}

static int component_register(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;

    c->priority = 90;
    register_one("priority", "Priority of the component; 0 or less switches it off", MCA_BASE_VAR_TYPE_INT,
                 OPAL_INFO_LVL_6, &c->priority);
    c->provider = "mcastcoll";
    register_one("provider",
                 "The libfabric provider to use, any that has FI_COLLECTIVE, for example \"tcp;ofi_rxm\"",
                 MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_4, &c->provider);
    // What a group costs to form, in what small operations save with it, between two and sixteen hosts.
    c->form_after = kMccFormAfterDefault;
    register_one(
        "form_after",
        "Blocking collectives on a communicator that are left to the other components before its group "
        "forms, each 16 KiB of a long one counting as another; 0: it forms at the first",
        MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->form_after);
    // With two members on two hosts a broadcast is one message, and a multicast can only be slower.
    c->min_comm_size = 3;
    register_one("min_comm_size",
                 "Communicators over several hosts with fewer members are left to the other components (at "
                 "least 2)",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->min_comm_size);
    c->single_host = kMccSingleHostDefault;
    register_one("single_host",
                 "Serve communicators whose members all share one host: 1 yes, 0 no, -1 only where "
                 "point-to-point has no "
                 "shared memory of its own (pml cm)",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->single_host);
    c->bcast_min_message = 0;
    register_one("bcast_min_message", "Broadcasts of fewer bytes are left to the other components",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_5, &c->bcast_min_message);
    c->max_message = SIZE_MAX / 2;
    register_one("max_message", "Messages of more bytes are left to the other components (no bound)",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_5, &c->max_message);
    c->segment = (size_t)32 << 20;
    register_one(
        "segment",
        "A message of more bytes becomes several operations of the provider, one after the other; "
        "gathered parts of more bytes are left to the other components; less where the provider takes less",
        MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_9, &c->segment);
    c->enable = "all";
    register_one("enable",
                 "Comma-separated list of the operations to serve, where the provider has them: all, none, "
                 "bcast, barrier, allreduce, reduce, allgather, allgatherv, gather, scatter, alltoall, "
                 "reduce_scatter, reduce_scatter_block; one with ^ before it is taken out",
                 MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_4, &c->enable);
    c->selection = "";
    register_one(
        "selection",
        "File of rules \"OPERATION MEMBERS HOSTS BYTES here|previous|measured\", the first that fits counts: "
        "what is left to the other components because they are faster, or found out by trying both. They "
        "come before those built in (all are printed with coll_mcastcoll_verbose 2)",
        MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_5, &c->selection);
    c->nonblocking = true;
    register_one("nonblocking", "Serve the non-blocking forms, too", MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_4,
                 &c->nonblocking);
    c->reduce_scatter_small = (size_t)16 << 10;
    register_one(
        "reduce_scatter_small",
        "Vectors of up to so many bytes whose parts are not as even as the provider deals them become "
        "an allreduce; larger ones are left to the other components",
        MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_9, &c->reduce_scatter_small);
    c->disable_on_error = false;
    register_one(
        "disable_on_error",
        "After a failed operation leave the communicator to the other components, instead of failing every "
        "further operation on it at once",
        MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &c->disable_on_error);
    c->join_timeout_ms = 10000;
    register_one("join_timeout",
                 "Milliseconds to wait for a group to form, as long again for every 64 members; then the "
                 "communicator is left to the others, and tried again after some thousand collectives",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &c->join_timeout_ms);
    c->linger_ms = 2000;
    register_one("linger",
                 "Milliseconds a group outlives its communicator, so that slower members can still have lost "
                 "data repaired",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_9, &c->linger_ms);
    c->eager_progress = false;
    register_one("eager_progress",
                 "Poll the provider in every turn of Open MPI's progress loop, not only in every eighth: "
                 "quicker repair for "
                 "others, slower point-to-point",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_9, &c->eager_progress);
    c->progress_thread = -1;
    register_one("progress_thread",
                 "A thread that polls the provider while nobody else does, so that others need not wait for "
                 "this process's next MPI call: 1 yes, 0 no, -1 only where point-to-point can block without "
                 "Open MPI's progress (pml cm)",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &c->progress_thread);
    c->verbose = 0;
    register_one("verbose", "Verbosity: 0 problems only, 1 decisions per communicator, 5 and above more",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_8, &c->verbose);
    return OMPI_SUCCESS;
}

static bool parse_enable(MccComponent* c) {
    char wrong[kMccReasonBytes] = "";
    const char* text = NULL != c->enable ? c->enable : "";
    if (mcc_read_collectives(text, &c->enabled, wrong, sizeof(wrong)) && 0 != c->enabled) return true;
    snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_enable: %.200s",
             '\0' != wrong[0] ? wrong : "no operation is left");
    return false;
}

static bool check_parameters(MccComponent* c) {
    if (NULL == c->provider || '\0' == c->provider[0]) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_provider is empty");
        return false;
    }
    if (c->min_comm_size < 2) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_min_comm_size is %d, must be 2 or more",
                 c->min_comm_size);
        return false;
    }
    if (c->form_after < 0) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_form_after is %d, must not be negative",
                 c->form_after);
        return false;
    }
    if (c->single_host < -1 || c->single_host > 1) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_single_host is %d, must be -1, 0 or 1",
                 c->single_host);
        return false;
    }
    if (c->progress_thread < -1 || c->progress_thread > 1) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_progress_thread is %d, must be -1, 0 or 1",
                 c->progress_thread);
        return false;
    }
    // A parameter such as -5 arrives here as a huge number.
    if (c->max_message > SIZE_MAX / 2 || c->bcast_min_message > SIZE_MAX / 2 || 0 == c->max_message) {
        snprintf(c->reason, sizeof(c->reason),
                 "coll_mcastcoll_max_message or _bcast_min_message is out of range");
        return false;
    }
    if (c->segment < 64 || c->segment > SIZE_MAX / 2) {
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_segment is %zu, must be 64 or more",
                 c->segment);
        return false;
    }
    if (c->join_timeout_ms < 1 || c->linger_ms < 0) {
        snprintf(c->reason, sizeof(c->reason),
                 "coll_mcastcoll_join_timeout must be positive, _linger not negative");
        return false;
    }
    if (!parse_enable(c)) return false;
    c->rules = mcc_rules_read(c->selection, c->reason);
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

void mcc_component_stop(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_progress_stop();
    pthread_mutex_lock(&c->fabric.lock);
    mcc_groups_reap(true);
    pthread_mutex_unlock(&c->fabric.lock);
    mcc_provider_close(&c->fabric);
    c->opened = false;
}

static int component_close(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (0 == c->output) return OMPI_SUCCESS;  // never opened
    mcc_component_stop();
    mcc_slots_free();
    mcc_peers_close();
    mcc_rules_free(c->rules);
    c->rules = NULL;
    opal_output_close(c->output);
    c->output = 0;
    c->ready = false;
    return OMPI_SUCCESS;
}
