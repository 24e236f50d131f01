#include "core/join.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>

#include "core/base.h"

enum { kMostEnding = 32 };

void mcc_join_add(MccProvider* p, MccJoin* j) {
    MccJoin** at = &p->joins;
    while (NULL != *at) at = &(*at)->next;
    *at = j;
}

// The set starts with one address and is then filled: the one form of fi_av_set that libfabric's own
// implementation and others read alike.
int mcc_join_begin(MccProvider* p, MccJoin* j, size_t members, void* key, size_t key_bytes,
                   const uint8_t* (*address_of)(const void* who, size_t rank), const void* who) {
    struct fi_av_set_attr attr = {.count = members, .stride = 1, .comm_key_size = key_bytes, .comm_key = key};
    for (size_t rank = 0; rank < members; ++rank) {
        fi_addr_t address = FI_ADDR_NOTAVAIL;
        const uint8_t* bytes = address_of(who, rank);
        const int error = NULL != bytes ? mcc_peer(p, bytes, &address) : FI_EADDRNOTAVAIL;
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
    if (!FI_CHECK_OP(j->mc->fid.ops, struct fi_ops, ops_open)) return;  // fi_open_ops() does not look
    if (0 != fi_open_ops(&j->mc->fid, FI_MCASTCOLL_GROUP_OPS, 0, (void**)&ops, NULL) || NULL == ops) return;
#define HAS(name) \
    (ops->size >= offsetof(struct fi_mcastcoll_group_ops, name) + sizeof(ops->name) && NULL != ops->name)
    if (HAS(run)) j->run = ops->run;
    if (HAS(get_shape) && 0 == ops->get_shape(j->mc, &shape)) j->sites = shape.sites;
    if (HAS(get_asked)) j->get_asked = ops->get_asked;
#undef HAS
}

int mcc_join(MccProvider* p, MccJoin* j, size_t members, int timeout_ms, int (*step)(void* who), void* who) {
    const double deadline = mcc_now_s() + timeout_ms * 1e-3 * (double)(1 + members / 64);
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
        if (mcc_now_s() > deadline) return FI_ETIMEDOUT;
        const int error = step(who);
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

// Events name the join by its context, by its group's fid, or by both. False: there was none.
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

// Some providers say here, too, that a join ended.
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
    // The buffer given is for one text only; providers may ignore it and return a constant.
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
    // What was said of it before is read now: the next group may lie where this one did.
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

// The oldest are first, near enough to the order of their ends for the limit.
int mcc_joins_reap(MccProvider* p, bool all) {
    int worst = 0;
    if (!all && 0 == p->ending) return 0;
    const double now = mcc_now_s();
    for (MccJoin **at = &p->joins, *j; NULL != (j = *at);) {
        if (!all && j->ends && is_open(j)) mcc_poll_joins(p);
        const bool unused = j->ends && 0 == j->users && !is_open(j);
        const bool due = all || (unused && (now >= j->close_at_s || p->ending > kMostEnding));
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
