// The provider's objects, and the only place that reads its queues.
//
// Progress: a thread that waits for an operation polls the completion queue itself and lets Open MPI progress
// in between; a low-priority opal_progress callback polls while any group exists, so that the repair of other
// members' losses goes on while this rank sits in some other MPI call.

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "coll_mcastcoll.h"
#include "opal/runtime/opal_progress.h"

double mcc_now_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

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

// What the provider can do decides what is served, beside the user's list.
static bool query_operations(MccFabric* fabric, const char* provider, char* reason) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    struct fi_collective_attr attr;
    fabric->max_members = SIZE_MAX;
    const struct {
        int bit;
        enum fi_collective_op operation;
        enum fi_datatype datatype;
    } rows[] = {{kMccBcast, FI_BROADCAST, FI_UINT8}, {kMccBarrier, FI_BARRIER, FI_VOID}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (!(c->enabled & rows[i].bit)) continue;
        memset(&attr, 0, sizeof(attr));
        attr.op = FI_NOOP;
        attr.datatype = rows[i].datatype;
        const int rc = fi_query_collective(fabric->domain, rows[i].operation, &attr, 0);
        if (0 != rc) {
            c->enabled &= ~rows[i].bit;
            MCC_VERBOSE(1, "coll/mcastcoll: provider %s does not serve operation %d: %s", provider,
                        rows[i].bit, fi_strerror(-rc));
        } else if (0 != attr.max_members && attr.max_members < fabric->max_members) {
            fabric->max_members = attr.max_members;
        }
    }
    if (0 != c->enabled) return true;
    snprintf(reason, kMccReasonBytes, "provider %s serves none of the operations \"%s\"", provider,
             c->enable);
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
    MccGroup* group;
    OPAL_LIST_FOREACH(group, &mca_coll_mcastcoll_component.groups, MccGroup) {
        if (context == &group->operation.context) return &group->operation;
        if (context == &group->join.context) return &group->join;
    }
    return NULL;
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
    operation->done = true;
}

int mcc_fabric_poll(void) {
    MccFabric* fabric = &mca_coll_mcastcoll_component.fabric;
    struct fi_cq_entry entries[8];
    const ssize_t got = fi_cq_read(fabric->cq, entries, sizeof(entries) / sizeof(entries[0]));
    if (got > 0) {
        for (ssize_t i = 0; i < got; ++i) {
            MccOperation* operation = find_operation(entries[i].op_context);
            if (NULL != operation) operation->done = true;
        }
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

int mcc_progress(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (c->waiting > 0) return 0;  // the waiting thread polls already
    if (0 != OPAL_THREAD_TRYLOCK(&c->lock)) return 0;
    const int events = mcc_fabric_poll();
    if (c->orphans > 0) mcc_groups_reap(false);
    OPAL_THREAD_UNLOCK(&c->lock);
    return events;
}

void mcc_wait_step(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    OPAL_THREAD_LOCK(&c->lock);
    const int events = mcc_fabric_poll();
    OPAL_THREAD_UNLOCK(&c->lock);
    if (0 == events) opal_progress();  // yields where Open MPI yields when idle
}
