#define _GNU_SOURCE  // tdestroy()
#include "core/provider.h"

#include <rdma/fi_cm.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool explain(char* reason, const char* name, const char* call, int error) {
    snprintf(reason, kMccReasonBytes, "provider %s: %s: %s", name, call, fi_strerror(-error));
    return false;
}

// Moves the info with the best preferred address to the front.
static void prefer_wanted(MccProvider* p) {
    for (size_t i = 0; i < p->wanted_count; ++i)
        for (struct fi_info** at = &p->info; NULL != *at; at = &(*at)->next) {
            struct fi_info* one = *at;
            if (!mcc_address_is(&p->wanted[i], one->src_addr, one->src_addrlen)) continue;
            *at = one->next;
            one->next = p->info;
            p->info = one;
            return;
        }
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
        snprintf(reason, kMccReasonBytes,
                 "libfabric has no provider \"%s\" with FI_COLLECTIVE on this host (check FI_PROVIDER_PATH "
                 "and FI_PROVIDER)",
                 name);
        return false;
    }
    if (0 != rc) return explain(reason, name, "fi_getinfo", rc);
    prefer_wanted(p);
    return true;
}

// Returns whether the provider has this collective, and lowers max_members to the limit of the collective.
// Some providers leave the element size 0. The format of a long double differs between machines, so its size
// must match.
static bool query(MccProvider* p, int collective, int datatype, int op) {
    static const size_t kBytes[FI_DATATYPE_LAST] = {[FI_FLOAT_COMPLEX] = 2 * sizeof(float),
                                                    [FI_DOUBLE_COMPLEX] = 2 * sizeof(double),
                                                    [FI_LONG_DOUBLE] = sizeof(long double),
                                                    [FI_LONG_DOUBLE_COMPLEX] = 2 * sizeof(long double)};
    struct fi_collective_attr attr = {.op = (enum fi_op)op, .datatype = (enum fi_datatype)datatype};
    if (0 != fi_query_collective(p->domain, (enum fi_collective_op)collective, &attr, 0)) return false;
    const size_t bytes = attr.datatype_attr.size;
    const size_t known = datatype < FI_DATATYPE_LAST ? kBytes[datatype] : 0;
    if (0 != bytes && 0 != known && bytes != known) return false;
    if (0 != attr.max_members && attr.max_members < p->max_members) p->max_members = attr.max_members;
    p->collectives |= UINT32_C(1) << collective;
    return true;
}

static void query_reduction(MccProvider* p, int collective) {
    for (int type = FI_INT8; type <= FI_LONG_DOUBLE_COMPLEX; ++type)
        for (int op = FI_MIN; op <= FI_BXOR; ++op)
            if (query(p, collective, type, op))
                p->reductions[collective][type] = (uint16_t)(p->reductions[collective][type] | 1 << op);
}

static bool query_all(MccProvider* p, const char* name, char* reason) {
    static const int kMoves[] = {FI_BROADCAST, FI_ALLGATHER, FI_GATHER, FI_SCATTER, FI_ALLTOALL};
    p->max_members = SIZE_MAX;
    (void)query(p, FI_BARRIER, FI_VOID, FI_NOOP);
    for (size_t i = 0; i < sizeof(kMoves) / sizeof(kMoves[0]); ++i)
        (void)query(p, kMoves[i], FI_UINT8, FI_NOOP);
    query_reduction(p, FI_ALLREDUCE);
    query_reduction(p, FI_REDUCE);
    query_reduction(p, FI_REDUCE_SCATTER);
    if (0 != p->collectives) return true;
    snprintf(reason, kMccReasonBytes, "provider %s supports no collective (fi_query_collective)", name);
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

uint64_t mcc_provider_digest(const MccProvider* p, uint64_t state) {
    const uint64_t numbers[] = {p->collectives, p->max_members};
    return mcc_digest(mcc_digest(state, numbers, sizeof(numbers)), p->reductions, sizeof(p->reductions));
}

// An entry of the tree `peers`, sorted by address bytes: a job may have tens of thousands of processes.
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

enum { kMaxEnding = 32 };

void mcc_join_add(MccProvider* p, MccJoin* j) {
    MccJoin** at = &p->joins;
    while (NULL != *at) at = &(*at)->next;
    *at = j;
}

// Makes the set from the first address and inserts the other addresses one by one. Only this form works both
// with libfabric's own implementation of fi_av_set and with other providers.
int mcc_join_begin(MccProvider* p, MccJoin* j, void* key, size_t key_bytes, const uint8_t* addresses) {
    const size_t members = (size_t)j->size;
    struct fi_av_set_attr attr = {.count = members, .stride = 1, .comm_key_size = key_bytes, .comm_key = key};
    for (size_t rank = 0; rank < members; ++rank) {
        fi_addr_t address = FI_ADDR_NOTAVAIL;
        const int error = mcc_peer(p, addresses + rank * p->address_bytes, &address);
        if (0 != error) return error;
        if (0 == rank) attr.start_addr = attr.end_addr = address;
        const int rc = 0 == rank ? fi_av_set(p->av, &attr, &j->set, NULL) : fi_av_set_insert(j->set, address);
        if (0 != rc) return -rc;
    }
    return -fi_av_set_addr(j->set, &j->address);
}

static void find_extensions(MccJoin* j) {
    struct fi_mcastcoll_group_ops* ops = NULL;
    struct fi_mcastcoll_group_shape shape;
    if (!FI_CHECK_OP(j->mc->fid.ops, struct fi_ops, ops_open)) return;  // fi_open_ops() does not check this
    if (0 != fi_open_ops(&j->mc->fid, FI_MCASTCOLL_GROUP_OPS, 0, (void**)&ops, NULL) || NULL == ops) return;
#define HAS(name) \
    (ops->size >= offsetof(struct fi_mcastcoll_group_ops, name) + sizeof(ops->name) && NULL != ops->name)
    if (HAS(run)) j->run = ops->run;
    if (HAS(get_shape) && 0 == ops->get_shape(j->mc, &shape)) {
        j->hosts = shape.hosts;
        j->sites = shape.sites;
    }
    if (HAS(get_naks_received)) j->get_naks_received = ops->get_naks_received;
    if (HAS(get_counter)) j->get_counter = ops->get_counter;
    if (HAS(get_failure)) j->get_failure = ops->get_failure;
#undef HAS
}

// Where cores are few, ranks arrive at a join at different times, so every 64 members extend the timeout by
// its initial length. Of the time between two iterations, at most kMaxS counts towards the timeout, so that a
// process that was stopped and continues still has the rest of its timeout.
int mcc_join(MccProvider* p, MccJoin* j, int timeout_ms, int (*step)(void* context), void* context) {
    static const double kMaxS = 0.1;
    double left_s = 1e-3 * timeout_ms * (1 + j->size / 64), seen_s = mcc_now_s();
    for (;;) {
        int rc = 0;
        pthread_mutex_lock(&p->lock);
        if (!j->posted) rc = fi_join_collective(p->ep, j->address, j->set, 0, &j->mc, &j->context);
        if (0 == rc) j->posted = true;
        mcc_poll_joins(p);
        const bool done = j->done;
        pthread_mutex_unlock(&p->lock);
        if (done) break;
        if (0 != rc && -FI_EAGAIN != rc) return -rc;
        const double now_s = mcc_now_s();
        left_s -= now_s - seen_s < kMaxS ? now_s - seen_s : kMaxS;
        seen_s = now_s;
        if (left_s < 0) return FI_ETIMEDOUT;
        const int error = step(context);
        if (0 != error) return error;
    }
    if (0 != j->error) return j->error;
    j->address = fi_mc_addr(j->mc);
    find_extensions(j);
    return 0;
}

static MccJoin* find_join(const MccProvider* p, const struct fid* fid, const void* context) {
    for (MccJoin* j = p->joins; NULL != j; j = j->next)
        if (context == &j->context || (NULL != fid && NULL != j->mc && fid == &j->mc->fid)) return j;
    return NULL;
}

static void end_join(MccJoin* j, int error) {
    if (NULL == j) return;
    j->error = error;
    j->done = true;
}

// Reads one join event. The event identifies the join by its context, by the fid of its group, or by both.
// False: there was no event.
static bool read_event(MccProvider* p) {
    uint32_t event = 0;
    struct fi_eq_entry entry;
    const ssize_t got = fi_eq_read(p->eq, &event, &entry, sizeof(entry), 0);
    if (got > 0 && FI_JOIN_COMPLETE == event) {
        end_join(find_join(p, entry.fid, entry.context), 0);
    } else if (-FI_EAVAIL == got) {
        struct fi_eq_err_entry error = {0};
        if (fi_eq_readerr(p->eq, &error, 0) < 1) return false;
        end_join(find_join(p, error.fid, error.context), 0 != error.err ? error.err : FI_EOTHER);
    }
    return got > 0 || -FI_EAVAIL == got;
}

void mcc_poll_joins(MccProvider* p) {
    enum { kMaxEvents = 64 };
    for (int i = 0; i < kMaxEvents && read_event(p); ++i) continue;
}

// Handles one completion. Some providers report the end of a join by a completion, too.
static void end_one(MccProvider* p, void* context, int error, const char* text, MccEnded ended) {
    MccJoin* j = find_join(p, NULL, context);
    end_join(j, error);
    if (NULL == j) ended(context, error, text);
}

int mcc_poll(MccProvider* p, MccEnded ended) {
    struct fi_cq_entry entries[8];
    const ssize_t got = fi_cq_read(p->cq, entries, sizeof(entries) / sizeof(entries[0]));
    for (ssize_t i = 0; i < got; ++i) end_one(p, entries[i].op_context, 0, "", ended);
    if (-FI_EAVAIL != got) return -FI_EAGAIN == got || -FI_EINTR == got ? 0 : (int)got;
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(p->cq, &entry, 0) < 1) return 1;
    // Passes no buffer for the text: a provider may ignore the buffer and return a constant text.
    const char* text = fi_cq_strerror(p->cq, entry.prov_errno, entry.err_data, NULL, 0);
    end_one(p, entry.op_context, 0 != entry.err ? entry.err : FI_EOTHER, NULL != text ? text : "", ended);
    return 1;
}

static int close_one(MccProvider* p, MccJoin* j) {
    const bool joined = NULL != j->mc;
    int rc = joined ? fi_close(&j->mc->fid) : 0;
    if (0 == rc && NULL != j->set) rc = fi_close(&j->set->fid);
    j->mc = NULL;
    j->set = NULL;
    // Reads pending events of this group now: the next group may get the same address.
    if (joined) mcc_poll_joins(p);
    return -rc;
}

void mcc_join_end(MccProvider* p, MccJoin* j, int linger_ms, bool disposable) {
    if (!j->ends) {
        ++p->ending;
        j->close_at_s = NULL != j->mc ? mcc_now_s() + linger_ms * 1e-3 : 0;
    }
    j->ends = true;
    j->disposable = j->disposable || disposable;
}

static bool is_open(const MccJoin* j) {
    return j->posted && !j->done;
}

// Closes ended joins before the end of their linger time when more than kMaxEnding have ended, the oldest
// joins first: the order of the joins approximates the order of their ends.
int mcc_joins_reap(MccProvider* p, bool all) {
    int worst = 0;
    if (!all && 0 == p->ending) return 0;
    const double now = mcc_now_s();
    for (MccJoin **at = &p->joins, *j; NULL != (j = *at);) {
        if (!all && j->ends && is_open(j)) mcc_poll_joins(p);
        const bool unused = j->ends && 0 == j->users && !is_open(j);
        const bool due = all || (unused && (now >= j->close_at_s || p->ending > kMaxEnding));
        if (due) {
            const int error = close_one(p, j);
            if (0 != error) worst = error;
            p->ending -= j->ends;
            j->ends = false;
        }
        if (due && j->disposable) {
            *at = j->next;
            free(j);
        } else {
            at = &j->next;
        }
    }
    return worst;
}
