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

void mcc_settings_register(const mca_base_component_t* component) {
    MccComponent* c = &mcc_component;
    c->base = component;
    PARAMETER("priority", priority, INT, 6, 90, "Priority of the component; 0 or less disables it");
    PARAMETER("provider", provider, STRING, 4, "mcastcoll",
              "libfabric provider to use; it must support FI_COLLECTIVE, for example \"tcp;ofi_rxm\"");
    // The default is the cost of forming a group divided by the time that the group saves per small
    // operation, on two to sixteen hosts.
    PARAMETER("form_after", form_after, INT, 5, 100,
              "Number of blocking collectives before a communicator switches to mcastcoll (each 16 KiB of a "
              "message counts as one; 0 = immediately)");
    // For two members on two hosts, a broadcast is one message, and multicast can only be slower.
    PARAMETER("min_comm_size", min_comm_size, INT, 5, 3,
              "Minimum number of members of a communicator on several hosts; smaller ones are left to the "
              "other components (at least 2)");
    PARAMETER("single_host", single_host, INT, 5, 1,
              "Serve communicators whose members are all on one host: 1 yes, 0 no, -1 only if point-to-point "
              "messages do not use shared memory (pml cm)");
    PARAMETER("bcast_min_message", bcast_min_message, SIZE_T, 5, 0,
              "Minimum bytes of a broadcast; shorter ones are left to the other components");
    PARAMETER("max_message", max_message, SIZE_T, 5, SIZE_MAX / 2,
              "Maximum bytes of a message; longer ones are left to the other components (default: no limit)");
    PARAMETER("segment", segment, SIZE_T, 9, (size_t)32 << 20,
              "Maximum bytes of one operation of the provider, at most the provider's own limit; a longer "
              "message becomes several operations, one after the other; longer parts of a gather are left to "
              "the other components");
    PARAMETER("enable", enable, STRING, 4, "all",
              "Comma-separated list of the operations to serve if the provider supports them: all, none, "
              "bcast, barrier, allreduce, reduce, allgather, allgatherv, gather, scatter, alltoall, "
              "reduce_scatter, reduce_scatter_block; a ^ before an operation excludes it");
    PARAMETER("selection", selection, STRING, 5, "",
              "File of rules \"OPERATION MEMBERS HOSTS BYTES here|previous|measured\", of which the first "
              "match counts: here = mcastcoll, previous = the other components, measured = the faster of "
              "both, found by trial. These rules are applied before the built-in ones "
              "(coll_mcastcoll_verbose 2 prints all rules)");
    PARAMETER("nonblocking", nonblocking, BOOL, 4, true, "Serve non-blocking collectives, too");
    PARAMETER("reduce_scatter_small", reduce_scatter_small, SIZE_T, 9, (size_t)16 << 10,
              "Maximum bytes of a reduce_scatter with uneven parts that is run as an allreduce, because the "
              "provider supports even parts only; longer ones are left to the other components");
    PARAMETER("disable_on_error", disable_on_error, BOOL, 6, false,
              "After a failed operation, leave the communicator to the other components instead of failing "
              "all further operations on it; the program must ensure that all ranks continue with the same "
              "operation, because an operation that failed on one rank may have succeeded on another");
    PARAMETER("join_timeout", join_timeout_ms, INT, 6, 10000,
              "Milliseconds to wait for a group to form, plus the same time for every 64 members; then the "
              "communicator is left to the other components, and the next attempt follows after some "
              "thousand collectives");
    PARAMETER("linger", linger_ms, INT, 9, 2000,
              "Milliseconds that a group outlives its communicator, so that slower members can still request "
              "lost data");
    PARAMETER(
        "eager_progress", eager_progress, BOOL, 9, false,
        "Poll the provider in every iteration of Open MPI's progress loop instead of every eighth: faster "
        "repair for peers, slower point-to-point messages");
    PARAMETER("progress_thread", progress_thread, BOOL, 5, true,
              "Use a thread that polls the provider while this process is outside MPI, or in an MPI call "
              "without progress. Without it, peers' retransmit requests wait for the next MPI call, which is "
              "a deadlock if this process waits for these peers outside MPI");
    PARAMETER("verbose", verbose, INT, 8, 0,
              "Verbosity: 0 problems only, 1 also decisions for each communicator, 5 and above more");
}

// A negative size such as -5 has been read as a huge number, which is negative again as int64_t.
bool mcc_settings_check(void) {
    MccComponent* c = &mcc_component;
    const struct {
        const char *name, *allowed;
        int64_t value, low, high;
    } numbers[] = {{"min_comm_size", "be 2 or more", c->min_comm_size, 2, INT64_MAX},
                   {"form_after", "not be negative", c->form_after, 0, INT64_MAX},
                   {"single_host", "be -1, 0 or 1", c->single_host, -1, 1},
                   {"max_message", "be 1 or more", (int64_t)c->max_message, 1, INT64_MAX},
                   {"bcast_min_message", "not be negative", (int64_t)c->bcast_min_message, 0, INT64_MAX},
                   {"segment", "be 64 or more", (int64_t)c->segment, 64, INT64_MAX},
                   {"join_timeout", "be 1 or more", c->join_timeout_ms, 1, INT64_MAX},
                   {"linger", "not be negative", c->linger_ms, 0, INT64_MAX}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
        if (numbers[i].value >= numbers[i].low && numbers[i].value <= numbers[i].high) continue;
        snprintf(c->reason, sizeof(c->reason), "coll_mcastcoll_%s is %lld, but must %s", numbers[i].name,
                 (long long)numbers[i].value, numbers[i].allowed);
        return false;
    }
    const char* text = NULL != c->enable ? c->enable : "";
    if (!mcc_read_collectives("coll_mcastcoll_enable", text, &c->enabled, c->reason)) return false;
    const bool named = NULL != c->provider && '\0' != c->provider[0];
    if (named && 0 != c->enabled) return true;
    snprintf(c->reason, sizeof(c->reason), "%s",
             named ? "coll_mcastcoll_enable excludes all operations" : "coll_mcastcoll_provider is empty");
    return false;
}

bool mcc_pml_is(const char* name) {
    return 0 == strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, name);
}
