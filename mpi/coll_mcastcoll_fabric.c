// The provider's objects, and the only place that reads its queues.

#include <stdio.h>
#include <string.h>

#include "coll_mcastcoll.h"

static bool explain(char* reason, const char* provider, const char* call, int error) {
    snprintf(reason, kMccReasonBytes, "provider %s: %s: %s", provider, call, fi_strerror(-error));
    return false;
}

static bool find_provider(MccFabric* fabric, const char* provider, char* reason) {
    struct fi_info* hints = fi_allocinfo();
    if (NULL == hints) return explain(reason, provider, "fi_allocinfo", -FI_ENOMEM);
    hints->caps = FI_MSG | FI_COLLECTIVE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->mr_mode = 0;
    hints->fabric_attr->prov_name = strdup(provider);
    const int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fabric->info);
    fi_freeinfo(hints);
    if (-FI_ENODATA == rc) {
        snprintf(
            reason, kMccReasonBytes,
            "no libfabric provider \"%s\" with FI_COLLECTIVE here (look at FI_PROVIDER_PATH and FI_PROVIDER)",
            provider);
        return false;
    }
    return 0 == rc || explain(reason, provider, "fi_getinfo", rc);
}

static bool open_endpoint(MccFabric* fabric, const char* provider, char* reason) {
    int rc = fi_endpoint(fabric->domain, fabric->info, &fabric->ep, NULL);
    if (0 != rc) return explain(reason, provider, "fi_endpoint", rc);
    if (0 != (rc = fi_ep_bind(fabric->ep, &fabric->av->fid, 0)) ||
        0 != (rc = fi_ep_bind(fabric->ep, &fabric->cq->fid, FI_TRANSMIT | FI_RECV)) ||
        0 != (rc = fi_ep_bind(fabric->ep, &fabric->eq->fid, 0))) {
        return explain(reason, provider, "fi_ep_bind", rc);
    }
    if (0 != (rc = fi_enable(fabric->ep))) return explain(reason, provider, "fi_enable", rc);
    return true;
}

// True, and the limits are taken over, if the provider has this collective.
static bool query(MccFabric* fabric, enum fi_collective_op collective, enum fi_datatype datatype,
                  enum fi_op op, size_t* bytes) {
    struct fi_collective_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.op = op;
    attr.datatype = datatype;
    if (0 != fi_query_collective(fabric->domain, collective, &attr, 0)) return false;
    if (0 != attr.max_members && attr.max_members < fabric->max_members) {
        fabric->max_members = attr.max_members;
    }
    if (NULL != bytes) *bytes = attr.datatype_attr.size;
    return true;
}

static bool reduces(MccFabric* fabric, unsigned offered, enum fi_datatype type, enum fi_op op,
                    size_t* bytes) {
    static const enum fi_collective_op kReductions[] = {FI_ALLREDUCE, FI_REDUCE, FI_REDUCE_SCATTER};
    for (size_t i = 0; i < sizeof(kReductions) / sizeof(kReductions[0]); ++i)
        if (0 != (offered >> kReductions[i] & 1) && !query(fabric, kReductions[i], type, op, bytes))
            return false;
    return true;
}

// Which elements it combines with which operators. All of its reductions have to have a pair, since the
// members of a job know one table.
static bool query_reductions(MccFabric* fabric, unsigned offered) {
    static const size_t kBytes[] = {[FI_FLOAT_COMPLEX] = 2 * sizeof(float),
                                    [FI_DOUBLE_COMPLEX] = 2 * sizeof(double),
                                    [FI_LONG_DOUBLE] = sizeof(long double),
                                    [FI_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double)};
    uint16_t* reductions = mca_coll_mcastcoll_component.reductions;
    bool any = false;
    memset(reductions, 0, kMccDatatypes * sizeof(*reductions));
    for (int type = FI_INT8; type <= FI_LONG_DOUBLE_COMPLEX; ++type) {
        for (int op = FI_MIN; op <= FI_BXOR; ++op) {
            size_t bytes = 0;
            if (!reduces(fabric, offered, (enum fi_datatype)type, (enum fi_op)op, &bytes)) continue;
            // Not every provider says how large its elements are; a long double may be anything.
            if (0 != bytes && 0 != kBytes[type] && bytes != kBytes[type]) continue;
            reductions[type] = (uint16_t)(reductions[type] | 1 << op);
            any = true;
        }
    }
    return any;
}

// What the provider can do decides what is served, beside the user's list.
static bool query_operations(MccFabric* fabric, const char* provider, char* reason) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    static const struct {
        enum fi_collective_op operation;
        enum fi_datatype datatype;
        enum fi_op op;
    } kRows[] = {{FI_BROADCAST, FI_UINT8, FI_NOOP},      {FI_BARRIER, FI_VOID, FI_NOOP},
                 {FI_ALLREDUCE, FI_DOUBLE, FI_SUM},      {FI_REDUCE, FI_DOUBLE, FI_SUM},
                 {FI_REDUCE_SCATTER, FI_DOUBLE, FI_SUM}, {FI_ALLGATHER, FI_UINT8, FI_NOOP},
                 {FI_GATHER, FI_UINT8, FI_NOOP},         {FI_SCATTER, FI_UINT8, FI_NOOP},
                 {FI_ALLTOALL, FI_UINT8, FI_NOOP}};
    const unsigned reductions = 1U << FI_ALLREDUCE | 1U << FI_REDUCE | 1U << FI_REDUCE_SCATTER;
    fabric->max_members = SIZE_MAX;
    c->offered = 0;
    for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i) {
        if (query(fabric, kRows[i].operation, kRows[i].datatype, kRows[i].op, NULL)) {
            c->offered |= 1U << kRows[i].operation;
        } else {
            MCC_VERBOSE(1, "coll/mcastcoll: provider %s has no %s", provider,
                        fi_tostr(&kRows[i].operation, FI_TYPE_COLLECTIVE_OP));
        }
    }
    if (0 != (c->offered & reductions) && !query_reductions(fabric, c->offered)) c->offered &= ~reductions;
    if (0 != c->offered) return true;
    snprintf(reason, kMccReasonBytes, "provider %s has none of the collectives", provider);
    return false;
}

bool mcc_fabric_open(MccFabric* fabric, const char* provider, size_t peers, char* reason) {
    memset(fabric, 0, sizeof(*fabric));
    if (!find_provider(fabric, provider, reason)) return false;

    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = peers};
    int rc = 0;
    bool good = true;
    if (0 != (rc = fi_fabric(fabric->info->fabric_attr, &fabric->fabric, NULL))) {
        good = explain(reason, provider, "fi_fabric", rc);
    } else if (0 != (rc = fi_eq_open(fabric->fabric, &eq_attr, &fabric->eq, NULL))) {
        good = explain(reason, provider, "fi_eq_open", rc);
    } else if (0 != (rc = fi_domain(fabric->fabric, fabric->info, &fabric->domain, NULL))) {
        good = explain(reason, provider, "fi_domain", rc);
    } else if (0 != (rc = fi_av_open(fabric->domain, &av_attr, &fabric->av, NULL))) {
        good = explain(reason, provider, "fi_av_open", rc);
    } else if (0 != (rc = fi_cq_open(fabric->domain, &cq_attr, &fabric->cq, NULL))) {
        good = explain(reason, provider, "fi_cq_open", rc);
    }
    good = good && query_operations(fabric, provider, reason) && open_endpoint(fabric, provider, reason);
    if (!good) mcc_fabric_close(fabric);
    return good;
}

static void close_one(struct fid* fid, const char* what) {
    const int rc = fi_close(fid);
    if (0 != rc) MCC_VERBOSE(1, "coll/mcastcoll: closing the %s: %s", what, fi_strerror(-rc));
}

void mcc_fabric_close(MccFabric* fabric) {
    if (NULL != fabric->ep) close_one(&fabric->ep->fid, "endpoint");
    if (NULL != fabric->cq) close_one(&fabric->cq->fid, "completion queue");
    if (NULL != fabric->av) close_one(&fabric->av->fid, "address vector");
    if (NULL != fabric->domain) close_one(&fabric->domain->fid, "domain");
    if (NULL != fabric->eq) close_one(&fabric->eq->fid, "event queue");
    if (NULL != fabric->fabric) close_one(&fabric->fabric->fid, "fabric");
    if (NULL != fabric->info) fi_freeinfo(fabric->info);
    memset(fabric, 0, sizeof(*fabric));
}

// Never follow a context before it is known to be ours: some providers let internal completions out.
static MccOperation* find_operation(const void* context) {
    MccOperation* slot = mcc_find_slot(context);
    if (NULL != slot) return slot;
    MccGroup* group;
    OPAL_LIST_FOREACH(group, &mca_coll_mcastcoll_component.groups, MccGroup) {
        if (context == &group->operation.context) return &group->operation;
        if (context == &group->join.context) return &group->join;
    }
    return NULL;
}

static void end_operation(MccOperation* operation) {
    if (NULL == operation) return;
    if (NULL != operation->request) {
        mcc_slot_done(operation);
    } else {
        operation->done = true;
    }
}

// Join events name the group by its context, by its fid, or by both.
static MccOperation* find_join(fid_t fid, const void* context) {
    MccGroup* group;
    OPAL_LIST_FOREACH(group, &mca_coll_mcastcoll_component.groups, MccGroup) {
        if (context == &group->join.context || (NULL != group->mc && fid == &group->mc->fid))
            return &group->join;
    }
    return NULL;
}

static void read_error(MccFabric* fabric) {
    struct fi_cq_err_entry entry;
    memset(&entry, 0, sizeof(entry));
    if (fi_cq_readerr(fabric->cq, &entry, 0) < 1) return;
    MccOperation* operation = find_operation(entry.op_context);
    if (NULL == operation) {
        MCC_VERBOSE(5, "coll/mcastcoll: an error without an operation: %s", fi_strerror(entry.err));
        return;
    }
    operation->error = 0 != entry.err ? entry.err : FI_EOTHER;
    operation->provider_error = entry.prov_errno;
    // The buffer given is for one text only; providers may ignore it and return a constant.
    const char* text = fi_cq_strerror(fabric->cq, entry.prov_errno, entry.err_data, NULL, 0);
    snprintf(operation->text, sizeof(operation->text), "%s", NULL != text ? text : "");
    end_operation(operation);
}

int mcc_fabric_poll(void) {
    MccFabric* fabric = &mca_coll_mcastcoll_component.fabric;
    struct fi_cq_entry entries[8];
    const ssize_t got = fi_cq_read(fabric->cq, entries, sizeof(entries) / sizeof(entries[0]));
    if (got > 0) {
        for (ssize_t i = 0; i < got; ++i) end_operation(find_operation(entries[i].op_context));
        return (int)got;
    }
    if (-FI_EAVAIL == got) {
        read_error(fabric);
        return 1;
    }
    if (got < 0 && -FI_EAGAIN != got && -FI_EINTR != got) fabric->broken = (int)-got;
    return 0;
}

void mcc_fabric_poll_events(void) {
    MccFabric* fabric = &mca_coll_mcastcoll_component.fabric;
    struct fi_eq_entry entry;
    uint32_t event = 0;
    const ssize_t got = fi_eq_read(fabric->eq, &event, &entry, sizeof(entry), 0);
    if (got > 0 && FI_JOIN_COMPLETE == event) {
        MccOperation* operation = find_join(entry.fid, entry.context);
        if (NULL != operation) operation->done = true;
    } else if (-FI_EAVAIL == got) {
        struct fi_eq_err_entry error;
        memset(&error, 0, sizeof(error));
        if (fi_eq_readerr(fabric->eq, &error, 0) < 1) return;
        MccOperation* operation = find_join(error.fid, error.context);
        if (NULL == operation) return;
        operation->error = 0 != error.err ? error.err : FI_EOTHER;
        operation->provider_error = error.prov_errno;
        operation->done = true;
    }
}
