#include "core/join.h"

#include <rdma/fi_cm.h>

#include "core/wait.h"

// The set starts with one address and is then filled: the one form of fi_av_set that libfabric's own
// implementation and others read alike.
int mcc_join_begin(MccProvider* p, MccJoin* j, size_t members, void* key, size_t key_bytes,
                   int (*address_of)(const void* who, size_t rank, fi_addr_t* address), const void* who) {
    struct fi_av_set_attr attr = {.count = members, .stride = 1, .comm_key_size = key_bytes, .comm_key = key};
    j->next = p->joins;
    p->joins = j;
    for (size_t rank = 0; rank < members; ++rank) {
        fi_addr_t address = FI_ADDR_NOTAVAIL;
        const int error = address_of(who, rank, &address);
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

int mcc_join(MccProvider* p, MccJoin* j, size_t members, int timeout_ms, const MccWaiting* w, void* who) {
    const double deadline = mcc_now_s() + timeout_ms * 1e-3 * (double)(1 + members / 64);
    for (;;) {
        int rc = 0;
        w->lock();
        if (!j->posted) rc = fi_join_collective(p->ep, j->address, j->set, 0, &j->mc, &j->context);
        if (0 == rc) j->posted = true;
        mcc_poll_joins(p);
        const bool done = j->done;
        w->unlock();
        if (done) break;
        if (0 != rc && -FI_EAGAIN != rc) return -rc;
        if (mcc_now_s() > deadline) return FI_ETIMEDOUT;
        const int error = w->step(who);
        if (0 != error) return error;
    }
    if (0 != j->error) return j->error;
    j->address = fi_mc_addr(j->mc);
    find_extensions(j);
    return 0;
}

MccJoin* mcc_find_join(const MccProvider* p, const struct fid* fid, const void* context) {
    for (MccJoin* j = p->joins; NULL != j; j = j->next)
        if (context == &j->context || (NULL != fid && NULL != j->mc && fid == &j->mc->fid)) return j;
    return NULL;
}

// Events name the join by its context, by its group's fid, or by both. False: there was none.
static bool read_event(MccProvider* p) {
    uint32_t event = 0;
    struct fi_eq_entry entry;
    const ssize_t got = fi_eq_read(p->eq, &event, &entry, sizeof(entry), 0);
    if (got > 0 && FI_JOIN_COMPLETE == event) {
        MccJoin* j = mcc_find_join(p, entry.fid, entry.context);
        if (NULL != j) j->done = true;
    } else if (-FI_EAVAIL == got) {
        struct fi_eq_err_entry error = {0};
        if (fi_eq_readerr(p->eq, &error, 0) < 1) return false;
        MccJoin* j = mcc_find_join(p, error.fid, error.context);
        if (NULL == j) return true;
        j->error = 0 != error.err ? error.err : FI_EOTHER;
        j->done = true;
    }
    return got > 0 || -FI_EAVAIL == got;
}

void mcc_poll_joins(MccProvider* p) {
    enum { kMaxEvents = 64 };
    for (int i = 0; i < kMaxEvents && read_event(p); ++i) continue;
}

int mcc_join_close(MccProvider* p, MccJoin* j) {
    const bool joined = NULL != j->mc;
    int rc = joined ? fi_close(&j->mc->fid) : 0;
    if (0 == rc && NULL != j->set) rc = fi_close(&j->set->fid);
    j->mc = NULL;
    j->set = NULL;
    MccJoin** at = &p->joins;
    while (NULL != *at && j != *at) at = &(*at)->next;
    if (NULL != *at) *at = j->next;
    // What was said of it before is read now: the next group may lie where this one did.
    if (joined) mcc_poll_joins(p);
    return -rc;
}
