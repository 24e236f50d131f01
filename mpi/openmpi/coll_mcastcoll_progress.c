// When the provider's queue is looked at, and by whom.
//
// A thread that waits for an operation polls the queue itself and lets Open MPI progress in between. An
// opal_progress callback polls while any group exists, so that the repair of other members' losses goes on
// while this rank sits in some other MPI call: in every turn while non-blocking operations are open, else in
// every eighth, as Open MPI's own callbacks of low priority.
//
// Not all MPI calls come by there: a blocking send of the pml cm waits in a loop of its own, for a receiver
// that may itself wait for what this rank has to repair. So there is a thread that stands in where no thread
// of the program has come by for a while. A timer tells it, which every such thread keeps putting off: while
// they poll the stand-in does not wake at all. While it stands in it sleeps on the descriptor of the
// provider's queue. It makes no MPI calls and completes no requests, so that the program's thread level does
// not matter; the component's lock is a real one for its sake, whatever that level is.

#define _GNU_SOURCE  // pthread_setname_np()
#include <poll.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "coll_mcastcoll.h"
#include "opal/runtime/opal_progress.h"

// The timer is put off when it was not for kPutOffNs, and rings kAwayNs after that. The kernel's coarse clock
// may have ticks of 10 ms.
enum { kPutOffNs = 2000000, kAwayNs = 16000000, kNapNs = 500000 };

static void set_alarm(const MccComponent* c, int64_t at_ns) {
    const struct itimerspec at = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};
    (void)timerfd_settime(c->alarm, TFD_TIMER_ABSTIME, &at, NULL);
}

void mcc_progress_seen(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (!atomic_load_explicit(&c->thread_runs, memory_order_acquire)) return;
    // Up to a tick behind, and so much cheaper than the clock itself that every call can look at it.
    const int64_t now = mcc_now_ns(CLOCK_MONOTONIC_COARSE);
    const int64_t rings = now + kAwayNs;
    if (rings - atomic_load_explicit(&c->rings_at_ns, memory_order_relaxed) < kPutOffNs) return;
    atomic_store(&c->rings_at_ns, rings);
    atomic_store(&c->stands_in, false);
    set_alarm(c, rings);
}

// The lock is held.
static int turn(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const int events = mcc_fabric_poll();
    if (0 != atomic_load(&c->backlog)) mcc_post_backlog();
    return events;
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
        if (NULL != g->join.get_asked && 0 == g->join.get_asked(g->join.mc, &times)) asked += times;
    }
    const double every = atomic_load_explicit(&c->poll_every_s, memory_order_relaxed);
    const double next = asked != c->asked ? kLeast_s : every < kMost_s ? 2 * every : every;
    atomic_store_explicit(&c->poll_every_s, next, memory_order_relaxed);
    c->asked = asked;
}

int mcc_progress(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_progress_seen();
    if (c->waiting > 0) return 0;  // the waiting thread polls already
    const bool idle = !c->eager_progress && 0 == atomic_load_explicit(&c->open, memory_order_relaxed);
    if (idle && !is_due(c)) return 0;
    if (0 != opal_mutex_trylock(&c->lock)) return 0;
    const int events = turn();
    if (idle) choose_pace(c);
    if (c->orphans > 0) mcc_groups_reap(false);
    opal_mutex_unlock(&c->lock);
    return events + mcc_complete_requests();
}

void mcc_wait_step(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    mcc_progress_seen();
    opal_mutex_lock(&c->lock);
    const int events = turn();
    opal_mutex_unlock(&c->lock);
    if (0 == events + mcc_complete_requests()) opal_progress();  // yields where Open MPI yields when idle
}

// What the thread does in place of the program. True: it may sleep until something comes for the provider.
static bool stand_in(MccComponent* c, int queue) {
    bool quiet = false;
    if (0 == opal_mutex_trylock(&c->lock)) {
        (void)turn();
        quiet = mcc_queue_is_quiet(&c->fabric, queue);
        opal_mutex_unlock(&c->lock);
    }
    if (!quiet && queue >= 0) (void)sched_yield();
    if (!quiet && queue < 0) mcc_nap(kNapNs);
    return quiet;
}

// Sleeps until the alarm rings or, while the thread stands in, something comes for the provider.
static void sleep_on(MccComponent* c, int queue) {
    uint64_t rings;
    struct pollfd any[] = {{.fd = c->alarm, .events = POLLIN}, {.fd = queue, .events = POLLIN}};
    (void)poll(any, sizeof(any) / sizeof(any[0]), -1);
    if (sizeof(rings) != read(c->alarm, &rings, sizeof(rings))) return;
    // Else somebody has come by meanwhile. Of several threads that did, the last to set the alarm need not
    // have been the last to look at the clock.
    const int64_t at = atomic_load(&c->rings_at_ns);
    if (mcc_now_ns(CLOCK_MONOTONIC) >= at) {
        atomic_store(&c->stands_in, true);
    } else {
        set_alarm(c, at);
    }
}

static void* watch(void* nothing) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const int queue = mcc_queue_descriptor(&c->fabric);
    while (!atomic_load(&c->thread_stops)) {
        const bool stands_in = atomic_load(&c->stands_in);
        if (!stands_in || stand_in(c, queue)) sleep_on(c, stands_in ? queue : -1);
    }
    return nothing;
}

static bool thread_wanted(const MccComponent* c) {
    if (c->progress_thread >= 0) return 1 == c->progress_thread;
    return mcc_pml_is("cm");
}

static bool start_thread(MccComponent* c) {
    c->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (c->alarm < 0) return false;
    atomic_store(&c->rings_at_ns, mcc_now_ns(CLOCK_MONOTONIC) + kAwayNs);
    set_alarm(c, atomic_load(&c->rings_at_ns));
    if (!mcc_start_thread(&c->thread, watch)) {
        (void)close(c->alarm);
        return false;
    }
    (void)pthread_setname_np(c->thread, "mcc-stand-in");
    atomic_store(&c->thread_runs, true);
    return true;
}

void mcc_progress_start(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    atomic_store(&c->poll_every_s, 1e-3);
    if (!c->polling) c->polling = OPAL_SUCCESS == opal_progress_register(mcc_progress);
    if (atomic_load(&c->thread_runs) || !thread_wanted(c) || start_thread(c)) return;
    MCC_VERBOSE(1, "coll/mcastcoll: no thread can be made, others' repairs wait for MPI calls");
}

void mcc_progress_stop(void) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    if (atomic_exchange(&c->thread_runs, false)) {
        atomic_store(&c->thread_stops, true);
        set_alarm(c, 1);
        (void)pthread_join(c->thread, NULL);
        atomic_store(&c->thread_stops, false);
        (void)close(c->alarm);
    }
    if (c->polling) (void)opal_progress_unregister(mcc_progress);
    c->polling = false;
}
