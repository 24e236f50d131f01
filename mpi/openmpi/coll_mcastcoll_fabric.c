// The provider as the component opens it, and what it says of operations.

#include <stdio.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "ompi/mca/rte/rte.h"

// libfabric's own collectives, which most providers have, see only what the address vector held when its
// first set was made, so that all addresses have to be there before.
bool mcc_fabric_is_eager(void) {
    return 0 != strcmp(mca_coll_mcastcoll_component.provider, "mcastcoll");
}

// What the provider can do decides what is served, beside the user's list.
static bool open_fabric(const char* provider, size_t peers, char* reason) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    static const enum fi_collective_op kAll[] = {FI_BROADCAST, FI_BARRIER,        FI_ALLREDUCE,
                                                 FI_REDUCE,    FI_REDUCE_SCATTER, FI_ALLGATHER,
                                                 FI_GATHER,    FI_SCATTER,        FI_ALLTOALL};
    // The thread that stands in sleeps on a descriptor, where the provider has one.
    const bool sleeps = 0 != c->progress_thread;
    if (!(sleeps && mcc_provider_open(&c->fabric, provider, peers, FI_WAIT_FD, reason)) &&
        !mcc_provider_open(&c->fabric, provider, peers, FI_WAIT_NONE, reason))
        return false;
    reason[0] = '\0';  // of the first try
    for (size_t i = 0; i < sizeof(kAll) / sizeof(kAll[0]); ++i) {
        if (0 == (c->fabric.collectives >> kAll[i] & 1))
            MCC_VERBOSE(1, "coll/mcastcoll: provider %s has no %s", provider,
                        fi_tostr(&kAll[i], FI_TYPE_COLLECTIVE_OP));
    }
    return true;
}

// A failure is told to the others with this process's next card.
void mcc_fabric_open(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (c->opened || '\0' != c->reason[0]) return;
    c->opened =
        mcc_libfabric_load(c->reason) && open_fabric(c->provider, ompi_process_info.num_procs, c->reason);
    if (!c->opened) return;
    const size_t most = c->fabric.info->ep_attr->max_msg_size;
    c->longest = c->segment < most ? c->segment : most;
}

// Never follow a context before it is known to be ours: some providers let internal completions out.
static MccOperation* find_operation(const void* context) {
    MccOperation* slot = mcc_find_slot(context);
    if (NULL != slot) return slot;
    for (MccJoin* j = mca_coll_mcastcoll_component.fabric.joins; NULL != j; j = j->next) {
        MccOperation* operation = &((MccGroup*)j)->operation;
        if (context == &operation->context) return operation;
    }
    return NULL;
}

void mcc_ended(const void* context, int error, const char* text) {
    MccOperation* operation = find_operation(context);
    if (NULL == operation) {
        if (0 != error)
            MCC_VERBOSE(5, "coll/mcastcoll: an error without an operation: %s", fi_strerror(error));
        return;
    }
    if (0 != error) {
        operation->error = error;
        snprintf(operation->text, sizeof(operation->text), "%s", text);
    }
    if (NULL != operation->request) {
        mcc_slot_done(operation);
    } else {
        operation->done = true;
    }
}
