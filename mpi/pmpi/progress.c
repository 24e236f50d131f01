// Progress of the provider while the program is elsewhere, and of MPI while it is in the provider.
//
// A member that has left a broadcast may have to repair others' losses while its program computes or waits in
// some MPI call, where nobody calls the provider. MPI has no hook for that, so a thread sleeps on the
// completion queue's descriptor and looks at the queue when there is something. It makes no MPI calls, so
// that the program's thread level does not matter. While some thread runs an operation, which makes all
// progress itself, it looks only now and then whether that is still so.

#include <poll.h>

#include "core/wait.h"
#include "pmpi.h"

enum { kBesideNs = 1000000, kBetweenNs = 100000, kSleepMs = 50 };

// Operations run without completions, so none is ours; reading makes the provider move.
void pmpi_poll(void) {
    struct fi_cq_entry entries[8];
    if (-FI_EAVAIL == fi_cq_read(pmpi.provider.cq, entries, sizeof(entries) / sizeof(entries[0]))) {
        struct fi_cq_err_entry error = {0};
        (void)fi_cq_readerr(pmpi.provider.cq, &error, 0);
        pmpi_say(2, "an error without an operation: %s", fi_strerror(error.err));
    }
    mcc_poll_joins(&pmpi.provider);
}

// Testing a request that nobody ever completes is what makes every MPI go on with all it has. A probe does
// not: MPICH answers one on a communicator of a single process without looking at anything else.
int pmpi_meanwhile(void* group) {
    int done;
    PMPI_Test(&((PmpiGroup*)group)->never, &done, MPI_STATUS_IGNORE);
    return !pmpi.settings.nap;
}

static void* keep_going(void* nothing) {
    struct pollfd descriptor = {.fd = mcc_queue_descriptor(&pmpi.provider), .events = POLLIN};
    while (!atomic_load(&pmpi.thread_stops)) {
        if (atomic_load(&pmpi.running) > 0) {
            mcc_nap(kBesideNs);
            continue;
        }
        pthread_mutex_lock(&pmpi.lock);
        pmpi_poll();
        pmpi_groups_reap(false);
        const bool quiet = mcc_queue_is_quiet(&pmpi.provider, descriptor.fd);
        pthread_mutex_unlock(&pmpi.lock);
        if (quiet) (void)poll(&descriptor, 1, kSleepMs);
        mcc_nap(kBetweenNs);
    }
    return nothing;
}

void pmpi_progress_start(void) {
    if (pmpi.thread_runs || !pmpi.settings.progress_thread) return;
    pmpi.thread_runs = mcc_start_thread(&pmpi.thread, keep_going);
    if (!pmpi.thread_runs) pmpi_say(1, "no thread can be made: repairs wait for this process's next call");
}

void pmpi_progress_stop(void) {
    if (!pmpi.thread_runs) return;
    atomic_store(&pmpi.thread_stops, true);
    pthread_join(pmpi.thread, NULL);
    pmpi.thread_runs = false;
}
