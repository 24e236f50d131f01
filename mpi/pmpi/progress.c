// Makes progress of the provider while the program is elsewhere, and of MPI while the program is in the
// provider. MPI has no hook for the former, so there is a progress thread (core/progress_thread.h). A running
// operation makes all of the provider's progress itself.

#include "pmpi.h"

// Handles nothing: operations run without completions, and the queue is read only so that the provider makes
// progress.
static void ended(const void* context, int error, const char* text) {
    (void)context, (void)text;
    if (0 != error)
        pmpi_log(2, "ignored an error in the completion queue, since no operation uses the queue: %s",
                 fi_strerror(error));
}

void pmpi_poll(void) {
    (void)mcc_poll(&pmpi.provider, ended);
    mcc_poll_joins(&pmpi.provider);
}

// Tests a request that never completes, which lets every MPI library make progress. A probe is not enough:
// MPICH answers a probe on a communicator of one process without making progress.
int pmpi_progress_mpi(void* group) {
    int done;
    PMPI_Test(&((PmpiGroup*)group)->idle_receive, &done, MPI_STATUS_IGNORE);
    return !pmpi.settings.nap;
}

void pmpi_groups_reap(bool all) {
    const int error = mcc_joins_reap(&pmpi.provider, all);
    if (0 != error)
        pmpi_log(1, "cannot close an unused group, whose resources the provider may keep: %s",
                 fi_strerror(error));
}

// Polls the provider for the progress thread, and closes groups whose linger time is over.
static int poll_for_program(void) {
    enum { kReapMs = 50 };
    pmpi_poll();
    pmpi_groups_reap(false);
    return pmpi.provider.ending > 0 ? kReapMs : -1;
}

void pmpi_progress_start(void) {
    enum { kIdleNs = 4000000 };
    if (pmpi.settings.progress_thread &&
        !mcc_progress_thread_start(&pmpi.thread, &pmpi.provider, kIdleNs, poll_for_program))
        pmpi_log(1,
                 "cannot create the progress thread: peers' retransmit requests wait for this process's next "
                 "collective");
}
