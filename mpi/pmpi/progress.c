// Progress of the provider while the program is elsewhere, and of MPI while it is in the provider.
//
// A member that has left a broadcast may have to repair others' losses while its program computes or waits in
// some MPI call, where nobody calls the provider. MPI has no hook for that, so a thread sleeps on the
// completion queue's descriptor and looks at the queue when there is something. It makes no MPI calls, so
// that the program's thread level does not matter. While some thread runs an operation, which makes all
// progress itself, it looks only now and then whether that is still so.

#include <poll.h>
#include <signal.h>
#include <time.h>

#include "pmpi.h"

enum { kMaxEvents = 64, kBesideNs = 1000000, kBetweenNs = 100000, kSleepMs = 50 };

static PmpiGroup* find_join(fid_t fid, const void* context) {
    for (PmpiGroup* g = pmpi.groups; NULL != g; g = g->next)
        if (context == &g->join_context || (NULL != g->mc && fid == &g->mc->fid)) return g;
    return NULL;
}

static bool read_event(void) {
    struct fid_eq* eq = pmpi.provider.eq;
    uint32_t event = 0;
    struct fi_eq_entry entry;
    const ssize_t got = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
    if (got > 0 && FI_JOIN_COMPLETE == event) {
        PmpiGroup* g = find_join(entry.fid, entry.context);
        if (NULL != g) g->join_done = true;
    } else if (-FI_EAVAIL == got) {
        struct fi_eq_err_entry error = {0};
        if (fi_eq_readerr(eq, &error, 0) < 1) return false;
        PmpiGroup* g = find_join(error.fid, error.context);
        if (NULL == g) return true;
        g->join_error = 0 != error.err ? error.err : FI_EOTHER;
        g->join_done = true;
    }
    return got > 0 || -FI_EAVAIL == got;
}

void pmpi_poll_events(void) {
    for (int i = 0; i < kMaxEvents && read_event(); ++i) continue;
}

// Operations run without completions, so none is ours; reading makes the provider move.
void pmpi_poll(void) {
    struct fi_cq_entry entries[8];
    if (-FI_EAVAIL == fi_cq_read(pmpi.provider.cq, entries, sizeof(entries) / sizeof(entries[0]))) {
        struct fi_cq_err_entry error = {0};
        (void)fi_cq_readerr(pmpi.provider.cq, &error, 0);
        pmpi_say(2, "an error without an operation: %s", fi_strerror(error.err));
    }
    pmpi_poll_events();
}

// Testing a request that nobody ever completes is what makes every MPI go on with all it has. A probe does
// not: MPICH answers one on a communicator of a single process without looking at anything else.
int pmpi_meanwhile(void* group) {
    int done;
    PMPI_Test(&((PmpiGroup*)group)->never, &done, MPI_STATUS_IGNORE);
    return !pmpi.settings.nap;
}

static void nap(long ns) {
    const struct timespec time = {.tv_nsec = ns};
    (void)nanosleep(&time, NULL);
}

static void* keep_going(void* nothing) {
    struct pollfd descriptor = {.events = POLLIN};
    struct fid* queue = &pmpi.provider.cq->fid;
    const bool waits = 0 == fi_control(queue, FI_GETWAIT, &descriptor.fd);
    while (!atomic_load(&pmpi.thread_stops)) {
        if (atomic_load(&pmpi.running) > 0) {
            nap(kBesideNs);
            continue;
        }
        pthread_mutex_lock(&pmpi.lock);
        pmpi_poll();
        pmpi_groups_reap(false);
        const bool quiet = waits && 0 == fi_trywait(pmpi.provider.fabric, &queue, 1);
        pthread_mutex_unlock(&pmpi.lock);
        if (quiet) (void)poll(&descriptor, 1, kSleepMs);
        nap(kBetweenNs);
    }
    return nothing;
}

// Signals are the program's, not this thread's.
void pmpi_progress_start(void) {
    if (pmpi.thread_runs || !pmpi.settings.progress_thread) return;
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pmpi.thread_runs = 0 == pthread_create(&pmpi.thread, NULL, keep_going, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!pmpi.thread_runs) pmpi_say(1, "no thread can be made: repairs wait for this process's next call");
}

void pmpi_progress_stop(void) {
    if (!pmpi.thread_runs) return;
    atomic_store(&pmpi.thread_stops, true);
    pthread_join(pmpi.thread, NULL);
    pmpi.thread_runs = false;
}
