// Opens the library at the first interposed collective and closes it in MPI_Finalize.
//
// A preloaded program without interposed collectives has no extra cost. Opening is a local step; each
// communicator then agrees on whether every member has succeeded (group.c).

#include "pmpi.h"

enum { kTermsVersion = 4, kPeersExpected = 64 };

// Returns a digest of the data formats and of every value that decides which side serves a call.
static uint64_t digest_terms(void) {
    const PmpiSettings* s = &pmpi.settings;
    const uint16_t one = 1;
    const uint64_t numbers[] = {kTermsVersion, s->enabled,          (uint64_t)s->min_members,
                                s->min_bytes,  s->max_bytes,        pmpi.provider.address_bytes,
                                sizeof(long),  sizeof(long double), *(const uint8_t*)&one};
    const uint64_t state =
        mcc_provider_digest(&pmpi.provider, mcc_digest(kMccDigest, numbers, sizeof(numbers)));
    // Halved, so that the digest and its complement are both positive numbers.
    return mcc_digest(state, s->provider, strlen(s->provider)) >> 1;
}

static void report_counts(void) {
    char line[400] = "";
    for (int i = 0; i < kMccCollectives; ++i) {
        const unsigned long long served = pmpi.served[i], left = pmpi.left[i];
        if (0 == served + left) continue;
        snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s %llu/%llu",
                 '\0' == line[0] ? "" : ", ", mcc_collective_names[i], served, served + left);
    }
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank && '\0' != line[0]) pmpi_log(1, "rank 0: calls served of calls made: %s", line);
}

static void close_all(void) {
    const bool opened = kPmpiOpen == atomic_load(&pmpi.life);
    if (opened) {
        mcc_progress_thread_stop(&pmpi.thread);
        report_counts();
    }
    pthread_mutex_lock(&pmpi.provider.lock);
    atomic_store(&pmpi.life, kPmpiClosed);
    pmpi_groups_cancel();
    pmpi_groups_reap(true);
    if (pmpi.ready) mcc_provider_close(&pmpi.provider);
    pmpi.ready = false;
    explicit_bzero(&pmpi.keys, sizeof(pmpi.keys));
    pthread_mutex_unlock(&pmpi.provider.lock);
    if (opened && MPI_COMM_NULL != pmpi.own_comm) PMPI_Comm_free(&pmpi.own_comm);
}

// Closes before MPI calls the program's delete callbacks. Collectives in these callbacks must be PMPI's on
// every member, whether or not this process had opened the provider, and for any order of callbacks.
__attribute__((visibility("default"))) int MPI_Finalize(void) {
    int begun = 0, ended = 0;
    PMPI_Initialized(&begun);
    PMPI_Finalized(&ended);
    if (begun && !ended) close_all();
    return PMPI_Finalize();
}

// Reads the settings and opens the provider, a local step. Errors are only recorded, since this process must
// take part in the agreements (group.c) in any case.
static void open_provider(void) {
    char reason[kMccReasonBytes] = "";
    int rank = 0, size = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* why = NULL;
    if (!pmpi_settings_read(&pmpi.settings, reason)) {
        if (0 == rank) pmpi_log(0, "%s; MPI's own collectives serve this job", reason);
        why = "a setting is invalid";
    } else if (0 == pmpi.settings.enabled) {
        why = "MCASTCOLL_PMPI_ENABLE excludes all operations";
    } else if (!pmpi_packs_plainly()) {
        why = "MPI_Pack of this MPI adds bytes to the packed data";
    } else if (!mcc_descriptors_left(mcc_descriptors_to_open(size), reason)) {
        why = reason;
    } else if (!mcc_draw_key_pair(&pmpi.keys)) {
        why = "the kernel returned no random numbers";
    }
    if (NULL != why) snprintf(pmpi.reason, sizeof(pmpi.reason), "%s", why);
    pmpi.ready = NULL == why &&
                 mcc_provider_open(&pmpi.provider, pmpi.settings.provider, kPeersExpected,
                                   pmpi.settings.progress_thread ? FI_WAIT_FD : FI_WAIT_NONE, pmpi.reason);
    pmpi.stages = pmpi_takes_devices();
    if (0 == rank && pmpi.ready && pmpi.stages)
        pmpi_log(1, "this MPI is GPU-aware: all messages are packed and unpacked by MPI_Pack");
    if (pmpi.ready) pmpi.terms = digest_terms();
}

// Called when the attribute of MPI_COMM_SELF is deleted in MPI_Finalize. Closes the library if the interposed
// MPI_Finalize was not called, because mpi_f08 and tools call PMPI_Finalize.
static int on_finalize(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    if (kPmpiOpen == atomic_load(&pmpi.life)) close_all();
    return MPI_SUCCESS;
}

// MPI may call an interposed function while it creates the library's communicator, in the thread that holds
// the lock.
static _Thread_local bool opening;

bool pmpi_open(void) {
    if (opening) return false;
    const int life = atomic_load_explicit(&pmpi.life, memory_order_acquire);
    if (kPmpiUnopened != life) return kPmpiOpen == life;
    int begun = 0, ended = 0;
    PMPI_Initialized(&begun);
    PMPI_Finalized(&ended);
    if (!begun || ended) return false;
    pthread_mutex_lock(&pmpi.provider.lock);
    if (kPmpiUnopened == atomic_load(&pmpi.life)) {
        opening = true;
        // Not MPI_Comm_dup(), which would call the program's attribute functions.
        PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &pmpi.own_comm);
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, pmpi_group_left, &pmpi.comm_key, NULL);
        int self_key = MPI_KEYVAL_INVALID;
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &self_key, NULL);
        PMPI_Comm_set_attr(MPI_COMM_SELF, self_key, NULL);
        open_provider();
        if (!pmpi.ready)
            pmpi_log(1, "off in this process, MPI's own collectives serve its communicators: %s",
                     pmpi.reason);
        opening = false;
        atomic_store_explicit(&pmpi.life, kPmpiOpen, memory_order_release);
    }
    pthread_mutex_unlock(&pmpi.provider.lock);
    return kPmpiOpen == atomic_load(&pmpi.life);
}
