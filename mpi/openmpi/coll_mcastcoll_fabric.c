// The provider's objects, and the only place that reads its queues.

#include <stdio.h>
#include <string.h>

#include "coll_mcastcoll.h"
#include "ompi/mca/rte/rte.h"

// Which elements it combines with which operators. All of its reductions have to have a pair, since the
// members of a job know one table.
static void find_reductions(const MccProvider* provider) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    static const int kReductions[] = {FI_ALLREDUCE, FI_REDUCE, FI_REDUCE_SCATTER};
    unsigned reductions = 0;
    bool any = false;
    for (int type = 0; type < kMccDatatypes; ++type) {
        unsigned pairs = UINT16_MAX;
        for (size_t i = 0; i < sizeof(kReductions) / sizeof(kReductions[0]); ++i) {
            reductions |= 1U << kReductions[i];
            if (0 != (c->offered >> kReductions[i] & 1)) pairs &= provider->reductions[kReductions[i]][type];
        }
        c->reductions[type] = (uint16_t)(0 != (c->offered & reductions) ? pairs : 0);
        any = any || 0 != c->reductions[type];
    }
    if (!any) c->offered &= ~reductions;
}

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
    c->offered = c->fabric.collectives;
    for (size_t i = 0; i < sizeof(kAll) / sizeof(kAll[0]); ++i) {
        if (0 == (c->offered >> kAll[i] & 1))
            MCC_VERBOSE(1, "coll/mcastcoll: provider %s has no %s", provider,
                        fi_tostr(&kAll[i], FI_TYPE_COLLECTIVE_OP));
    }
    find_reductions(&c->fabric);
    if (0 != c->offered) return true;
    snprintf(reason, kMccReasonBytes, "provider %s has none of the collectives", provider);
    mcc_provider_close(&c->fabric);
    return false;
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
    MccGroup* group;
    OPAL_LIST_FOREACH(group, &mca_coll_mcastcoll_component.groups, MccGroup) {
        if (context == &group->operation.context) return &group->operation;
    }
    return NULL;
}

static void end_operation(MccOperation* operation) {
    if (NULL != operation->request) {
        mcc_slot_done(operation);
    } else {
        operation->done = true;
    }
}

// Some providers say here, too, that a join ended.
static void end(const void* context) {
    MccOperation* operation = find_operation(context);
    MccJoin* join =
        NULL == operation ? mcc_find_join(&mca_coll_mcastcoll_component.fabric, NULL, context) : NULL;
    if (NULL != operation) end_operation(operation);
    if (NULL != join) join->done = true;
}

static void read_error(MccProvider* fabric) {
    struct fi_cq_err_entry entry;
    memset(&entry, 0, sizeof(entry));
    if (fi_cq_readerr(fabric->cq, &entry, 0) < 1) return;
    MccOperation* operation = find_operation(entry.op_context);
    MccJoin* join = NULL == operation ? mcc_find_join(fabric, NULL, entry.op_context) : NULL;
    if (NULL != join) {
        join->error = 0 != entry.err ? entry.err : FI_EOTHER;
        join->done = true;
        return;
    }
    if (NULL == operation) {
        MCC_VERBOSE(5, "coll/mcastcoll: an error without an operation: %s", fi_strerror(entry.err));
        return;
    }
    operation->error = 0 != entry.err ? entry.err : FI_EOTHER;
    // The buffer given is for one text only; providers may ignore it and return a constant.
    const char* text = fi_cq_strerror(fabric->cq, entry.prov_errno, entry.err_data, NULL, 0);
    snprintf(operation->text, sizeof(operation->text), "%s", NULL != text ? text : "");
    end_operation(operation);
}

int mcc_fabric_poll(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccProvider* fabric = &c->fabric;
    struct fi_cq_entry entries[8];
    const ssize_t got = fi_cq_read(fabric->cq, entries, sizeof(entries) / sizeof(entries[0]));
    if (got > 0) {
        for (ssize_t i = 0; i < got; ++i) end(entries[i].op_context);
        return (int)got;
    }
    if (-FI_EAVAIL == got) {
        read_error(fabric);
        return 1;
    }
    if (got < 0 && -FI_EAGAIN != got && -FI_EINTR != got) c->broken = (int)-got;
    return 0;
}
