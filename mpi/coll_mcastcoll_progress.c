// When the provider's queue is looked at, and by whom.
//
// A thread that waits for an operation polls the queue itself and lets Open MPI progress in between. An
// opal_progress callback polls while any group exists, so that the repair of other members' losses goes on
// while this rank sits in some other MPI call: in every turn while non-blocking operations are open, else in
// every eighth, as Open MPI's own callbacks of low priority.
//
// Not all MPI calls come by there: a blocking send of the pml cm waits in a loop of its own, for a receiver
// that may itself wait for what this rank has to repair. So there is a thread that looks when nobody else
// has for a while. It makes no MPI calls and completes no requests, so that the program's thread level does
// not matter; the component's lock is a real one for its sake, whatever that level is.

#include <signal.h>
#include <string.h>
#include <time.h>

#include "coll_mcastcoll.h"
#include "ompi/mca/pml/base/base.h"
#include "opal/runtime/opal_progress.h"

enum { kBesideNs = 4000000, kAloneNs = 500000 };

double mcc_now_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The lock is held.
static int turn(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const int events = mcc_fabric_poll();
    if (0 != atomic_load(&c->backlog)) mcc_post_backlog();
    return events;
}

// The lock is held. The same, of a thread of the program's.
static int turn_here(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const unsigned looks = atomic_load_explicit(&c->looks, memory_order_relaxed);
    atomic_store_explicit(&c->looks, looks + 1, memory_order_relaxed);
    return turn();
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
    MccGroup* g;
    OPAL_LIST_FOREACH(g, &c->groups, MccGroup) {
        uint64_t times = 0;
        if (NULL != g->mc && NULL != g->get_asked && 0 == g->get_asked(g->mc, &times)) asked += times;
    }
    const double every = atomic_load_explicit(&c->poll_every_s, memory_order_relaxed);
    const double next = asked != c->asked ? kLeast_s : every < kMost_s ? 2 * every : every;
    atomic_store_explicit(&c->poll_every_s, next, memory_order_relaxed);
    c->asked = asked;
}

int mcc_progress(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (c->waiting > 0) return 0;  // the waiting thread polls already
    const bool idle = !c->eager_progress && 0 == atomic_load_explicit(&c->open, memory_order_relaxed);
    if (idle && !is_due(c)) return 0;
    if (0 != opal_mutex_trylock(&c->lock)) return 0;
    const int events = turn_here();
    if (idle) choose_pace(c);
    if (c->orphans > 0) mcc_groups_reap(false);
    opal_mutex_unlock(&c->lock);
    if (0 != atomic_load_explicit(&c->join_count, memory_order_relaxed)) mcc_join_progress();
    return events + mcc_complete_requests();
}

void mcc_wait_step(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    opal_mutex_lock(&c->lock);
    const int events = turn_here();
    opal_mutex_unlock(&c->lock);
    if (0 != atomic_load_explicit(&c->join_count, memory_order_relaxed)) mcc_join_progress();
    if (0 == events + mcc_complete_requests()) opal_progress();  // yields where Open MPI yields when idle
}

static void nap(long ns) {
    const struct timespec time = {.tv_nsec = ns};
    (void)nanosleep(&time, NULL);
}

static void* stand_in(void* nothing) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    unsigned seen = 0;
    while (!atomic_load(&c->thread_stops)) {
        const unsigned looks = atomic_load_explicit(&c->looks, memory_order_relaxed);
        const bool others_look = looks != seen;
        seen = looks;
        if (!others_look && 0 == opal_mutex_trylock(&c->lock)) {
            (void)turn();
            opal_mutex_unlock(&c->lock);
        }
        nap(others_look ? kBesideNs : kAloneNs);
    }
    return nothing;
}

static bool thread_wanted(const MccComponent* c) {
    if (c->progress_thread >= 0) return 1 == c->progress_thread;
    return 0 == strcmp(mca_pml_base_selected_component.pmlm_version.mca_component_name, "cm");
}

// Signals are the program's, not the thread's.
void mcc_progress_start(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    atomic_store(&c->poll_every_s, 1e-3);
    if (!c->polling) c->polling = OPAL_SUCCESS == opal_progress_register(mcc_progress);
    if (c->thread_runs || !thread_wanted(c)) return;
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    c->thread_runs = 0 == pthread_create(&c->thread, NULL, stand_in, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!c->thread_runs)
        MCC_VERBOSE(1, "coll/mcastcoll: no thread can be made, others' repairs wait for MPI calls");
}

void mcc_progress_stop(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (c->thread_runs) {
        atomic_store(&c->thread_stops, true);
        (void)pthread_join(c->thread, NULL);
        atomic_store(&c->thread_stops, false);
        c->thread_runs = false;
    }
    if (c->polling) (void)opal_progress_unregister(mcc_progress);
    c->polling = false;
}
