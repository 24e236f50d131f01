#define _GNU_SOURCE  // tdestroy()
#include "core/provider.h"

#include <rdma/fi_cm.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool explain(char* reason, const char* name, const char* call, int error) {
    snprintf(reason, kMccProviderReasonBytes, "provider %s: %s: %s", name, call, fi_strerror(-error));
    return false;
}

static bool find(MccProvider* p, const char* name, char* reason) {
    struct fi_info* hints = fi_allocinfo();
    if (NULL == hints) return explain(reason, name, "fi_allocinfo", -FI_ENOMEM);
    hints->caps = FI_MSG | FI_COLLECTIVE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->mr_mode = 0;
    hints->fabric_attr->prov_name = strdup(name);
    const int rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &p->info);
    fi_freeinfo(hints);
    if (-FI_ENODATA == rc) {
        snprintf(reason, kMccProviderReasonBytes,
                 "no libfabric provider \"%s\" with FI_COLLECTIVE here (look at FI_PROVIDER_PATH and "
                 "FI_PROVIDER)",
                 name);
        return false;
    }
    return 0 == rc || explain(reason, name, "fi_getinfo", rc);
}

// True, and the limits are taken over, if the provider has this collective.
static bool query(MccProvider* p, int collective, int datatype, int op, size_t* bytes) {
    struct fi_collective_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.op = (enum fi_op)op;
    attr.datatype = (enum fi_datatype)datatype;
    if (0 != fi_query_collective(p->domain, (enum fi_collective_op)collective, &attr, 0)) return false;
    if (0 != attr.max_members && attr.max_members < p->max_members) p->max_members = attr.max_members;
    if (NULL != bytes) *bytes = attr.datatype_attr.size;
    return true;
}

// Not every provider says how large its elements are; a long double may be anything.
static bool is_of_our_size(int datatype, size_t bytes) {
    static const size_t kBytes[] = {[FI_FLOAT_COMPLEX] = 2 * sizeof(float),
                                    [FI_DOUBLE_COMPLEX] = 2 * sizeof(double),
                                    [FI_LONG_DOUBLE] = sizeof(long double),
                                    [FI_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double)};
    return 0 == bytes || 0 == kBytes[datatype] || bytes == kBytes[datatype];
}

static void query_reduction(MccProvider* p, int collective) {
    for (int type = FI_INT8; type <= FI_LONG_DOUBLE_COMPLEX; ++type) {
        for (int op = FI_MIN; op <= FI_BXOR; ++op) {
            size_t bytes = 0;
            if (!query(p, collective, type, op, &bytes) || !is_of_our_size(type, bytes)) continue;
            p->reductions[collective][type] = (uint16_t)(p->reductions[collective][type] | 1 << op);
            p->collectives |= UINT32_C(1) << collective;
        }
    }
}

static bool query_all(MccProvider* p, const char* name, char* reason) {
    p->max_members = SIZE_MAX;
    static const int kMoves[] = {FI_BROADCAST, FI_ALLGATHER, FI_GATHER, FI_SCATTER, FI_ALLTOALL};
    if (query(p, FI_BARRIER, FI_VOID, FI_NOOP, NULL)) p->collectives |= UINT32_C(1) << FI_BARRIER;
    for (size_t i = 0; i < sizeof(kMoves) / sizeof(kMoves[0]); ++i) {
        if (query(p, kMoves[i], FI_UINT8, FI_NOOP, NULL)) p->collectives |= UINT32_C(1) << kMoves[i];
    }
    query_reduction(p, FI_ALLREDUCE);
    query_reduction(p, FI_REDUCE);
    query_reduction(p, FI_REDUCE_SCATTER);
    if (0 != p->collectives) return true;
    snprintf(reason, kMccProviderReasonBytes, "provider %s: fi_query_collective finds nothing", name);
    return false;
}

static void forget(MccProvider* p) {
    memset(&p->info, 0, sizeof(*p) - offsetof(MccProvider, info));
}

static bool open_parts(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason) {
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = peers};
    struct fi_cq_attr cq_attr = {.size = 1024, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = wait_object};
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
    int rc;
#define STEP(call, ...) \
    if (0 != (rc = call(__VA_ARGS__))) return explain(reason, name, #call, rc)
    STEP(fi_fabric, p->info->fabric_attr, &p->fabric, NULL);
    STEP(fi_eq_open, p->fabric, &eq_attr, &p->eq, NULL);
    STEP(fi_domain, p->fabric, p->info, &p->domain, NULL);
    STEP(fi_av_open, p->domain, &av_attr, &p->av, NULL);
    STEP(fi_cq_open, p->domain, &cq_attr, &p->cq, NULL);
    if (!query_all(p, name, reason)) return false;
    STEP(fi_endpoint, p->domain, p->info, &p->ep, NULL);
    STEP(fi_ep_bind, p->ep, &p->av->fid, 0);
    STEP(fi_ep_bind, p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV);
    STEP(fi_ep_bind, p->ep, &p->eq->fid, 0);
    STEP(fi_enable, p->ep);
    p->address_bytes = sizeof(p->address);
    STEP(fi_getname, &p->ep->fid, p->address, &p->address_bytes);
#undef STEP
    return true;
}

bool mcc_provider_open(MccProvider* p, const char* name, size_t peers, enum fi_wait_obj wait_object,
                       char* reason) {
    forget(p);
    if (!find(p, name, reason)) return false;
    if (open_parts(p, name, peers, wait_object, reason)) return true;
    mcc_provider_close(p);
    return false;
}

void mcc_provider_close(MccProvider* p) {
    if (NULL != p->ep) (void)fi_close(&p->ep->fid);
    if (NULL != p->cq) (void)fi_close(&p->cq->fid);
    if (NULL != p->av) (void)fi_close(&p->av->fid);
    if (NULL != p->domain) (void)fi_close(&p->domain->fid);
    if (NULL != p->eq) (void)fi_close(&p->eq->fid);
    if (NULL != p->fabric) (void)fi_close(&p->fabric->fid);
    if (NULL != p->info) fi_freeinfo(p->info);
    tdestroy(p->peers, free);
    forget(p);
}

bool mcc_provider_has(const MccProvider* p, enum fi_collective_op collective, enum fi_datatype type,
                      enum fi_op op) {
    return 0 != (p->collectives >> collective & 1) &&
           (FI_NOOP == op || 0 != (p->reductions[collective][type] >> op & 1));
}

// By its bytes, which are as many for all: a tree, since a job may have tens of thousands.
typedef struct {
    fi_addr_t address;
    size_t width;
    uint8_t bytes[];
} Peer;

static int compare(const void* a, const void* b) {
    const Peer *first = a, *second = b;
    return memcmp(first->bytes, second->bytes, first->width);
}

int mcc_peer(MccProvider* p, const uint8_t* bytes, fi_addr_t* address) {
    Peer* peer = malloc(sizeof(*peer) + p->address_bytes);
    if (NULL == peer) return FI_ENOMEM;
    peer->width = p->address_bytes;
    memcpy(peer->bytes, bytes, p->address_bytes);
    Peer** found = tsearch(peer, &p->peers, compare);
    const bool is_new = NULL != found && *found == peer;
    const int rc = is_new ? fi_av_insert(p->av, bytes, 1, &peer->address, 0, NULL) : 1;
    if (NULL != found) *address = (*found)->address;
    if (1 != rc) (void)tdelete(peer, &p->peers, compare);
    if (!is_new || 1 != rc) free(peer);
    if (NULL == found) return FI_ENOMEM;
    return 1 == rc ? 0 : rc < 0 ? -rc : FI_EADDRNOTAVAIL;
}
