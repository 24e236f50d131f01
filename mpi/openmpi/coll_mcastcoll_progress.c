// When the provider's queue is looked at, and by whom.
//
// A thread that waits for an operation polls the queue itself and lets Open MPI progress in between. An
// opal_progress callback polls while any group exists, so that the repair of other members' losses goes on
// while this rank sits in some other MPI call: in every turn while non-blocking operations are open, else in
// every eighth, as Open MPI's own callbacks of low priority.
//
// Not all MPI calls come by there: a blocking send of the pml cm waits in a loop of its own, for a receiver
// that may itself wait for what this rank has to repair. So there a thread stands in (core/stand_in.h) where
// no thread of the program has come by for a while. It completes no requests, since that may call back into
// MPI.

#include "coll_mcastcoll.h"
#include "opal/runtime/opal_progress.h"

// The lock is held.
static int turn(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const int events = mcc_poll(&c->fabric, mcc_ended);
    if (events < 0) c->broken = -events;
    if (0 != atomic_load(&c->backlog)) mcc_post_backlog();
    return events > 0 ? events : 0;
}

// While nothing is open here, others may still want something: what they have lost, say. They can wait for a
// while, and Open MPI's own messages, which wait in here, need not pay for it.
static bool is_due(MccComponent* c) {
    enum { kClockEvery = 8 };
    if (0 != atomic_fetch_add_explicit(&c->turns, 1, memory_order_relaxed) % kClockEvery) return false;
    const double now = mcc_now_s();
    if (now < atomic_load_explicit(&c->poll_at_s, memory_order_relaxed)) return false;
    atomic_store_explicit(&c->poll_at_s, now + atomic_load_explicit(&c->poll_every_s, memory_order_relaxed),
                          memory_order_relaxed);
    return true;
}

// The lock is held. A look costs each of Open MPI's operations some per cent where ranks share cores, so
// there are few, unless others have lost something since the last one.
static void choose_pace(MccComponent* c) {
    static const double kLeast_s = 0.25e-3, kMost_s = 4e-3;
    uint64_t asked = 0;
    for (MccJoin* j = c->fabric.joins; NULL != j; j = j->next) {
        uint64_t times = 0;
        if (NULL != j->mc && NULL != j->get_asked && 0 == j->get_asked(j->mc, &times)) asked += times;
    }
    const double every = atomic_load_explicit(&c->poll_every_s, memory_order_relaxed);
    const double next = asked != c->asked ? kLeast_s : every < kMost_s ? 2 * every : every;
    atomic_store_explicit(&c->poll_every_s, next, memory_order_relaxed);
    c->asked = asked;
}

int mcc_progress(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_seen(&c->stand_in);
    if (c->waiting > 0) return 0;  // the waiting thread polls already
    const bool idle = !c->eager_progress && 0 == atomic_load_explicit(&c->open, memory_order_relaxed);
    if (idle && !is_due(c)) return 0;
    if (0 != pthread_mutex_trylock(&c->fabric.lock)) return 0;
    const int events = turn();
    if (idle) choose_pace(c);
    mcc_groups_reap(false);
    pthread_mutex_unlock(&c->fabric.lock);
    return events + mcc_complete_requests();
}

void mcc_wait_step(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_seen(&c->stand_in);
    pthread_mutex_lock(&c->fabric.lock);
    const int events = turn();
    pthread_mutex_unlock(&c->fabric.lock);
    if (0 == events + mcc_complete_requests()) opal_progress();  // yields where Open MPI yields when idle
}

static int stand_in(void) {
    (void)turn();
    return -1;
}

static bool thread_wanted(const MccComponent* c) {
    if (c->progress_thread >= 0) return 1 == c->progress_thread;
    return mcc_pml_is("cm");
}

void mcc_progress_start(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    atomic_store(&c->poll_every_s, 1e-3);
    if (!c->polling) c->polling = OPAL_SUCCESS == opal_progress_register(mcc_progress);
    enum { kAwayNs = 12000000 };
    if (!thread_wanted(c) || mcc_stand_in_start(&c->stand_in, &c->fabric, kAwayNs, stand_in)) return;
    MCC_VERBOSE(1, "coll/mcastcoll: no thread can be made, others' repairs wait for MPI calls");
}

void mcc_progress_stop(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_stand_in_stop(&c->stand_in);
    if (c->polling) (void)opal_progress_unregister(mcc_progress);
    c->polling = false;
}
