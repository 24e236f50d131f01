// The component's global state, with the MCA parameters.

#include "coll_mcastcoll.h"
#include "ompi/mca/pml/base/base.h"
#include "opal/mca/base/mca_base_var.h"

MccComponent mcc_component = {.fabric = {.lock = PTHREAD_MUTEX_INITIALIZER}};

// Registers an MCA parameter with default and help text.
#define PARAMETER(name, field, type, level, value, help)                                                   \
    do {                                                                                                   \
        c->field = value;                                                                                  \
        (void)mca_base_component_var_register(component, name, help, MCA_BASE_VAR_TYPE_##type, NULL, 0, 0, \
                                              OPAL_INFO_LVL_##level, MCA_BASE_VAR_SCOPE_READONLY,          \
                                              &c->field);                                                  \
    } while (0)

// Keys of coll_mcastcoll_experiment (docs/EXPERIMENTS.md). A parameter with the name of a key is an error.
enum {
    kProvider,
    kSingleHost,
    kBcastMinMessage,
    kMaxMessage,
    kSegment,
    kNonblocking,
    kReduceScatterSmall,
    kDisableOnError,
    kLinger,
    kEagerProgress,
    kExperiments
};

#define YES_OR_NO \
    { "0", "1" }
static const MccSetting kDefaults[kExperiments] = {
    [kProvider] = {"provider", .text = NULL},
    [kSingleHost] = {"single_host", .value = 1, .words = {"0", "1", "-1"}},
    [kBcastMinMessage] = {"bcast_min_message", .high = INT64_MAX},
    [kMaxMessage] = {"max_message", .value = INT64_MAX, .low = 1, .high = INT64_MAX},
    [kSegment] = {"segment", .value = 32 << 20, .low = 64, .high = INT64_MAX},
    [kNonblocking] = {"nonblocking", .value = 1, .words = YES_OR_NO},
    [kReduceScatterSmall] = {"reduce_scatter_small", .value = 16 << 10, .high = INT64_MAX},
    [kDisableOnError] = {"disable_on_error", .words = YES_OR_NO},
    [kLinger] = {"linger", .value = 2000, .high = INT32_MAX},
    [kEagerProgress] = {"eager_progress", .words = YES_OR_NO}};

// Values of the parameters that had the names of these keys before 0.9.0; NULL: not set.
static char* former_parameters[kExperiments];

void mcc_settings_register(const mca_base_component_t* component) {
    MccComponent* c = &mcc_component;
    c->base = component;
    PARAMETER("priority", priority, INT, 6, 90, "Priority of the component; 0 or less disables it");
    // The default is the cost of forming a group divided by the time that the group saves per small
    // operation, on two to sixteen hosts.
    PARAMETER("form_after", form_after, INT, 5, 100,
              "Number of blocking collectives before a communicator switches to mcastcoll (each 16 KiB of a "
              "message counts as one; 0 = immediately)");
    // For two members on two hosts, a broadcast is one message, and multicast can only be slower.
    PARAMETER("min_comm_size", min_comm_size, INT, 5, 3,
              "Minimum number of members of a communicator on several hosts; smaller ones are left to the "
              "other components (at least 2)");
    PARAMETER("enable", enable, STRING, 4, "all",
              "Comma-separated list of the operations to serve if the provider supports them: all, none, "
              "bcast, barrier, allreduce, reduce, allgather, allgatherv, gather, scatter, alltoall, "
              "reduce_scatter, reduce_scatter_block; a ^ before an operation excludes it");
    PARAMETER("selection", selection, STRING, 5, "",
              "File of rules \"OPERATION MEMBERS HOSTS BYTES here|previous|measured\", of which the first "
              "match counts: here = mcastcoll, previous = the other components, measured = the faster of "
              "both, found by trial. These rules are applied before the built-in ones "
              "(coll_mcastcoll_verbose 2 prints all rules)");
    PARAMETER("join_timeout", join_timeout_ms, INT, 6, 10000,
              "Milliseconds to wait for a group to form, plus the same time for every 64 members; then the "
              "communicator is left to the other components, and the next attempt follows after some "
              "thousand collectives");
    PARAMETER("progress_thread", progress_thread, BOOL, 5, true,
              "Use a thread that polls the provider while this process is outside MPI, or in an MPI call "
              "without progress. Without it, peers' retransmit requests wait for the next MPI call, which is "
              "a deadlock if this process waits for these peers outside MPI");
    PARAMETER("verbose", verbose, INT, 8, 0,
              "Verbosity: 0 problems only, 1 also decisions for each communicator, 5 and above more");
    PARAMETER("experiment", experiment, STRING, 9, "",
              "Settings for experiments: a comma-separated list of KEY=VALUE. docs/EXPERIMENTS.md explains "
              "the keys");
    for (size_t i = 0; i < kExperiments; ++i)
        (void)mca_base_component_var_register(
            component, kDefaults[i].name, "Now a key of coll_mcastcoll_experiment", MCA_BASE_VAR_TYPE_STRING,
            NULL, 0, MCA_BASE_VAR_FLAG_INTERNAL, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
            &former_parameters[i]);
}

static bool read_experiment(MccComponent* c) {
    MccSetting settings[kExperiments];
    memcpy(settings, kDefaults, sizeof(settings));
    settings[kProvider].text = c->provider;
    strcpy(c->provider, "mcastcoll");
    for (size_t i = 0; i < kExperiments; ++i) {
        if (NULL == former_parameters[i] || '\0' == former_parameters[i][0]) continue;
        snprintf(c->reason, sizeof(c->reason),
                 "coll_mcastcoll_%s has another name now: set coll_mcastcoll_experiment to %s=%.60s",
                 settings[i].name, settings[i].name, former_parameters[i]);
        return false;
    }
    if (!mcc_read_experiment("coll_mcastcoll_experiment", NULL != c->experiment ? c->experiment : "",
                             settings, kExperiments, c->reason))
        return false;
    c->single_host = 2 == settings[kSingleHost].value ? -1 : (int)settings[kSingleHost].value;
    c->bcast_min_message = settings[kBcastMinMessage].value;
    c->max_message = settings[kMaxMessage].value;
    c->segment = settings[kSegment].value;
    c->nonblocking = 1 == settings[kNonblocking].value;
    c->reduce_scatter_small = settings[kReduceScatterSmall].value;
    c->disable_on_error = 1 == settings[kDisableOnError].value;
    c->linger_ms = (int)settings[kLinger].value;
    c->eager_progress = 1 == settings[kEagerProgress].value;
    return true;
}

bool mcc_settings_check(void) {
    MccComponent* c = &mcc_component;
    const struct {
        const char *name, *allowed;
        int64_t value, low, high;
    } numbers[] = {{"min_comm_size", "be 2 or more", c->min_comm_size, 2, INT64_MAX},
                   {"form_after", "not be negative", c->form_after, 0, INT64_MAX},
                   {"join_timeout", "be 1 or more", c->join_timeout_ms, 1, INT64_MAX}};
    if (!read_experiment(c)) return false;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        if (numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high) continue;
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_%s is %lld, but must %s", numbers[i].name,
                 (long long)numbers[i].value, numbers[i].allowed);
        return false;
    }
    const char* text = NULL != c->enable ? c->enable : "";
    if (!mcc_read_collectives("coll_mcastcoll_enable", text, &c->enabled, c->reason)) return false;
    if (0 == c->enabled)
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_enable excludes all operations");
    return 0 != c->enabled;
}

bool mcc_pml_is(const char* name) {
    return 0 == strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, name);
}
