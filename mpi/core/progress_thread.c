#define _GNU_SOURCE  // pthread_setname_np()
#include "core/progress_thread.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void set_timer(const MccProgressThread* t, int64_t at_ns) {
    const struct itimerspec at = {.it_value = {at_ns / 1000000000, at_ns % 1000000000}};
    (void)timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void mcc_note_progress(MccProgressThread* t) {
    if (!atomic_load_explicit(&t->runs, memory_order_acquire)) return;
    const int64_t due_ns = mcc_now_ns(CLOCK_MONOTONIC_COARSE) + t->idle_ns;
    if (due_ns <= atomic_load_explicit(&t->due_at_ns, memory_order_relaxed)) return;
    atomic_store(&t->due_at_ns, due_ns);
    atomic_store(&t->active, false);
    set_timer(t, due_ns);
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

// Runs one iteration of the active thread. Returns the milliseconds to sleep if the provider has no event, -1
// for no limit; 0: the thread must not sleep.
static int iterate(MccProgressThread* t, int queue) {
    bool quiet = false;
    int bound = -1;
    if (0 == pthread_mutex_trylock(&t->provider->lock)) {
        bound = t->poll_provider();
        quiet = is_quiet(t->provider, queue);
        pthread_mutex_unlock(&t->provider->lock);
    }
    if (!quiet && queue >= 0) (void)sched_yield();
    if (!quiet && queue < 0) nap();
    return quiet ? bound : 0;
}

// Sleeps until the timer expires or an event of the provider arrives, `bound` milliseconds at most.
static void sleep_on(MccProgressThread* t, int queue, int bound) {
    uint64_t expirations;
    struct pollfd any[] = {{.fd = t->timer, .events = POLLIN}, {.fd = queue, .events = POLLIN}};
    (void)poll(any, sizeof(any) / sizeof(any[0]), bound);
    if (sizeof(expirations) != read(t->timer, &expirations, sizeof(expirations))) return;
    // The deadline may have moved meanwhile: of several program threads that report progress, the last to set
    // the timer need not have the latest time. A thread inside the provider sets the timer when it leaves.
    const int64_t at = atomic_load(&t->due_at_ns);
    if (mcc_now_ns(CLOCK_MONOTONIC) < at) {
        set_timer(t, at);
    } else if (0 == atomic_load(&t->inside)) {
        atomic_store(&t->active, true);
    }
}

static void* run_thread(void* self) {
    MccProgressThread* t = self;
    int queue = -1;
    if (0 != fi_control(&t->provider->cq->fid, FI_GETWAIT, &queue)) queue = -1;
    while (!atomic_load(&t->stops)) {
        const bool active = atomic_load(&t->active);
        const int bound = active ? iterate(t, queue) : -1;
        if (0 != bound) sleep_on(t, active ? queue : -1, bound);
    }
    return NULL;
}

// Starts the thread with all signals blocked, since signals are for the program's threads.
static bool start_thread(MccProgressThread* t) {
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = 0 == pthread_create(&t->thread, NULL, run_thread, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) (void)pthread_setname_np(t->thread, "mcc-progress");
    return started;
}

bool mcc_progress_thread_start(MccProgressThread* t, MccProvider* p, int64_t idle_ns,
                               int (*poll_provider)(void)) {
    struct timespec tick;
    if (atomic_load(&t->runs)) return true;
    (void)clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    t->provider = p;
    t->idle_ns = idle_ns + tick.tv_nsec;
    t->poll_provider = poll_provider;
    t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (t->timer < 0) return false;
    atomic_store(&t->due_at_ns, mcc_now_ns(CLOCK_MONOTONIC) + t->idle_ns);
    set_timer(t, atomic_load(&t->due_at_ns));
    atomic_store(&t->runs, start_thread(t));
    if (!atomic_load(&t->runs)) (void)close(t->timer);
    return atomic_load(&t->runs);
}

void mcc_progress_thread_stop(MccProgressThread* t) {
    if (!atomic_exchange(&t->runs, false)) return;
    atomic_store(&t->stops, true);
    set_timer(t, 1);
    (void)pthread_join(t->thread, NULL);
    atomic_store(&t->stops, false);
    (void)close(t->timer);
}
