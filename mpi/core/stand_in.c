#define _GNU_SOURCE  // pthread_setname_np()
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/provider.h"

static void set_alarm(const MccStandIn* s, int64_t at_ns) {
    const struct itimerspec at = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};
    (void)timerfd_settime(s->alarm, TFD_TIMER_ABSTIME, &at, NULL);
}

void mcc_seen(MccStandIn* s) {
    if (!atomic_load_explicit(&s->runs, memory_order_acquire)) return;
    const int64_t rings = mcc_now_ns(CLOCK_MONOTONIC_COARSE) + s->away_ns;
    if (rings <= atomic_load_explicit(&s->rings_at_ns, memory_order_relaxed)) return;
    atomic_store(&s->rings_at_ns, rings);
    atomic_store(&s->stands_in, false);
    set_alarm(s, rings);
}

static void nap(void) {
    const struct timespec time = {.tv_nsec = 500000};
    (void)nanosleep(&time, NULL);
}

// Returns whether the provider has no pending event. The lock is held.
static bool is_quiet(MccProvider* p, int descriptor) {
    struct fid* queue = &p->cq->fid;
    return descriptor >= 0 && 0 == fi_trywait(p->fabric, &queue, 1);
}

// An iteration of the active thread. Returns the time to sleep without an event of the provider, as turn()
// does; 0: no sleep.
static int stand_in(MccStandIn* s, int queue) {
    bool quiet = false;
    int bound = -1;
    if (0 == pthread_mutex_trylock(&s->provider->lock)) {
        bound = s->turn();
        quiet = is_quiet(s->provider, queue);
        pthread_mutex_unlock(&s->provider->lock);
    }
    if (!quiet && queue >= 0) (void)sched_yield();
    if (!quiet && queue < 0) nap();
    return quiet ? bound : 0;
}

// Sleeps until the timer expires or an event of the provider arrives, `bound` milliseconds at most.
static void sleep_on(MccStandIn* s, int queue, int bound) {
    uint64_t rings;
    struct pollfd any[] = {{.fd = s->alarm, .events = POLLIN}, {.fd = queue, .events = POLLIN}};
    (void)poll(any, sizeof(any) / sizeof(any[0]), bound);
    if (sizeof(rings) != read(s->alarm, &rings, sizeof(rings))) return;
    // The deadline may have moved meanwhile: of several program threads that report progress, the last to set
    // the timer need not have the latest time. A thread inside the provider sets the timer when it leaves.
    const int64_t at = atomic_load(&s->rings_at_ns);
    if (mcc_now_ns(CLOCK_MONOTONIC) < at) {
        set_alarm(s, at);
    } else if (0 == atomic_load(&s->inside)) {
        atomic_store(&s->stands_in, true);
    }
}

static void* watch(void* stand_in_of) {
    MccStandIn* s = stand_in_of;
    int queue = -1;
    if (0 != fi_control(&s->provider->cq->fid, FI_GETWAIT, &queue)) queue = -1;
    while (!atomic_load(&s->stops)) {
        const bool stands_in = atomic_load(&s->stands_in);
        const int bound = stands_in ? stand_in(s, queue) : -1;
        if (0 != bound) sleep_on(s, stands_in ? queue : -1, bound);
    }
    return NULL;
}

// Blocks all signals in the thread: they are for the program's threads.
static bool start_thread(MccStandIn* s) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = 0 == pthread_create(&s->thread, NULL, watch, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) (void)pthread_setname_np(s->thread, "mcc-stand-in");
    return started;
}

bool mcc_stand_in_start(MccStandIn* s, MccProvider* p, int64_t away_ns, int (*turn)(void)) {
    struct timespec tick;
    if (atomic_load(&s->runs)) return true;
    (void)clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    s->provider = p;
    s->away_ns = away_ns + tick.tv_nsec;
    s->turn = turn;
    s->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->alarm < 0) return false;
    atomic_store(&s->rings_at_ns, mcc_now_ns(CLOCK_MONOTONIC) + s->away_ns);
    set_alarm(s, atomic_load(&s->rings_at_ns));
    atomic_store(&s->runs, start_thread(s));
    if (!atomic_load(&s->runs)) (void)close(s->alarm);
    return atomic_load(&s->runs);
}

void mcc_stand_in_stop(MccStandIn* s) {
    if (!atomic_exchange(&s->runs, false)) return;
    atomic_store(&s->stops, true);
    set_alarm(s, 1);
    (void)pthread_join(s->thread, NULL);
    atomic_store(&s->stops, false);
    (void)close(s->alarm);
}
