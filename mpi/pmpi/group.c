// Forms a provider group at the communicator's first interposed collective, or leaves the communicator to MPI
// permanently.
//
// Every member performs the same steps in the same order: (1) agreement that the provider is open with the
// same settings on every member; (2) exchange of the addresses and of rank 0's secret (secret.c); (3) making
// the address vector set, a local step, and agreement on the success, so that a late member's delay does not
// count towards the join's timeout; (4) the join, bounded by a timeout; (5) agreement. So either all members
// use the group or none.
//
// After a failed operation, a group is closed after the linger time, so that other members do not wait for
// this member.

#include <sched.h>

#include "pmpi.h"

static void cancel(PmpiGroup* g) {
    if (MPI_REQUEST_NULL == g->idle_receive) return;
    PMPI_Cancel(&g->idle_receive);
    PMPI_Wait(&g->idle_receive, MPI_STATUS_IGNORE);
}

// Must be called before MPI is finalised. The groups stay in memory but are no longer used.
void pmpi_groups_cancel(void) {
    for (MccJoin* j = pmpi.provider.joins; NULL != j; j = j->next) cancel((PmpiGroup*)j);
}

static void end(PmpiGroup* g, bool disposable) {
    pthread_mutex_lock(&pmpi.provider.lock);
    mcc_join_end(&pmpi.provider, &g->join, pmpi.settings.linger_ms, disposable);
    pmpi_groups_reap(kPmpiClosed == atomic_load(&pmpi.life));
    pthread_mutex_unlock(&pmpi.provider.lock);
    mcc_note_progress(&pmpi.thread);
}

void pmpi_group_break(PmpiGroup* g) {
    g->state = kPmpiBroken;
    end(g, false);
}

int pmpi_group_left(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)extra;
    PmpiGroup* g = value;
    cancel(g);
    mcc_bounce_trim(&g->bounce, 0);
    end(g, true);
    return MPI_SUCCESS;
}

// Checks that every member is ready with the same settings. One reduction finds the lowest rank that is not
// ready, and whether minimum and maximum of the digests are equal.
static bool agree_on_terms(PmpiGroup* g, char* reason) {
    const int64_t terms = (int64_t)pmpi.terms;
    const int64_t number = 0 == g->join.rank ? (int64_t)atomic_fetch_add(&pmpi.next_number, 1) : INT64_MAX;
    const int64_t mine[4] = {pmpi.ready ? g->join.size : g->join.rank, terms, INT64_MAX - terms, number};
    int64_t all[4] = {0, 0, 0, 0};
    if (MPI_SUCCESS != PMPI_Allreduce(mine, all, 4, MPI_INT64_T, MPI_MIN, g->comm)) return false;
    g->number = all[3];
    if (all[0] < g->join.size) {
        char text[kMccReasonBytes];
        memcpy(text, pmpi.reason, sizeof(text));
        if (MPI_SUCCESS != PMPI_Bcast(text, sizeof(text), MPI_CHAR, (int)all[0], g->comm)) return false;
        snprintf(reason, kMccReasonBytes, "rank %d could not open the provider: %.180s", (int)all[0], text);
        return false;
    }
    if (all[1] != INT64_MAX - all[2]) {
        snprintf(reason, kMccReasonBytes,
                 "the members have different MCASTCOLL_PMPI_* settings, providers or types of machine");
        return false;
    }
    return true;
}

// Gives every member the worst outcome: 0, or an error and a rank with this error.
static bool agree(const PmpiGroup* g, const char* step, int error, char* reason) {
    int64_t mine = mcc_status(error, g->join.rank), worst = 0;
    if (MPI_SUCCESS != PMPI_Allreduce(&mine, &worst, 1, MPI_INT64_T, MPI_MAX, g->comm)) return false;
    if (0 == worst) return true;
    snprintf(reason, kMccReasonBytes, "%s failed on rank %d: %s", step, mcc_status_rank(worst),
             fi_strerror(mcc_status_error(worst)));
    return false;
}

static int go_on(void* group) {
    pthread_mutex_lock(&pmpi.provider.lock);
    pmpi_poll();
    pthread_mutex_unlock(&pmpi.provider.lock);
    (void)pmpi_progress_mpi(group);
    (void)sched_yield();
    return 0;
}

static int join(PmpiGroup* g) {
    const int error = mcc_join(&pmpi.provider, &g->join, pmpi.settings.join_timeout_ms, go_on, g);
    if (0 != error || NULL != g->join.run) return error;
    if (0 == g->join.rank)
        pmpi_log(1, "provider %s lacks the extension " FI_MCASTCOLL_GROUP_OPS " by which operations run",
                 pmpi.settings.provider);
    return FI_ENOPROTOOPT;
}

// The communication key of a group's address vector set.
typedef struct {
    int64_t number;
    MccSecret secret;  // rank 0's
} Key;

static int begin(PmpiGroup* g, uint8_t* addresses, PmpiSharing* sharing, Key* key) {
    const int width = (int)pmpi.provider.address_bytes;
    if (MPI_SUCCESS !=
        PMPI_Allgather(pmpi.provider.address, width, MPI_BYTE, addresses, width, MPI_BYTE, g->comm))
        return FI_EOTHER;
    int error = pmpi_share_secret(g, sharing, &key->secret);
    if (0 != error) return error;
    pthread_mutex_lock(&pmpi.provider.lock);
    error = mcc_join_begin(&pmpi.provider, &g->join, key, sizeof(*key), addresses);
    pthread_mutex_unlock(&pmpi.provider.lock);
    return error;
}

static bool form(PmpiGroup* g, char* reason) {
    Key key;
    memset(&key, 0, sizeof(key));
    if (!agree_on_terms(g, reason)) return false;
    PMPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, pmpi.own_comm, &g->idle_receive);
    key.number = g->number;
    // The settings are the same on every member from here on.
    if (g->join.size < pmpi.settings.min_members || (size_t)g->join.size > pmpi.provider.max_members) {
        snprintf(reason, kMccReasonBytes,
                 "%d members, but MCASTCOLL_PMPI_MIN_MEMBERS is %d and the provider supports at most %zu",
                 g->join.size, pmpi.settings.min_members, pmpi.provider.max_members);
        return false;
    }
    uint8_t* addresses = malloc((size_t)g->join.size * pmpi.provider.address_bytes);
    PmpiSharing* sharing = pmpi_sharing_make(g->join.size);
    const bool drawn = 0 != g->join.rank || mcc_draw_secret(&key.secret);
    const bool good = NULL != addresses && NULL != sharing && drawn;
    const bool begun =
        agree(g, "malloc, or getrandom", good ? 0 : FI_ENOMEM, reason) &&
        agree(g, "the group's secret, or the address vector,", begin(g, addresses, sharing, &key), reason);
    explicit_bzero(&key, sizeof(key));
    free(sharing);
    free(addresses);
    return begun && agree(g, "the join", join(g), reason);
}

static PmpiGroup* make(MPI_Comm comm) {
    PmpiGroup* g = calloc(1, sizeof(*g));
    if (NULL == g) PMPI_Abort(comm, 1);  // the other members would wait for this process forever
    int inter = 0;
    char reason[kMccReasonBytes] = "MPI failed";
    g->comm = comm;
    g->state = kPmpiLeft;
    g->join.users = 1;
    g->idle_receive = MPI_REQUEST_NULL;
    PMPI_Comm_test_inter(comm, &inter);
    PMPI_Comm_rank(comm, &g->join.rank);
    PMPI_Comm_size(comm, &g->join.size);
    pthread_mutex_lock(&pmpi.provider.lock);
    mcc_join_add(&pmpi.provider, &g->join);
    pmpi_groups_reap(false);
    pthread_mutex_unlock(&pmpi.provider.lock);
    // A collective called while the group forms finds the state kPmpiLeft and goes to PMPI. Such calls occur
    // when an MPI library builds collectives from other collectives, or when a failing collective calls the
    // program's error handler.
    PMPI_Comm_set_attr(comm, pmpi.comm_key, g);
    if (!inter && g->join.size > 1) {
        char name[MPI_MAX_OBJECT_NAME] = "";
        int letters = 0;
        PMPI_Comm_get_name(comm, name, &letters);
        if (form(g, reason)) {
            g->state = kPmpiServing;
            pthread_mutex_lock(&pmpi.provider.lock);
            pmpi_progress_start();
            pthread_mutex_unlock(&pmpi.provider.lock);
            if (0 == g->join.rank) pmpi_log(1, "serves communicator '%s', %d members", name, g->join.size);
        } else if (0 == g->join.rank) {
            pmpi_log(1, "leaves communicator '%s', %d members, to MPI's own collectives: %s", name,
                     g->join.size, reason);
        }
    }
    pthread_mutex_lock(&pmpi.provider.lock);
    g->join.users = 0;
    pthread_mutex_unlock(&pmpi.provider.lock);
    return g;
}

// A communicator that this thread is freeing. Its delete callbacks may call collectives, which must be PMPI's
// on every member, since the group is closed before. During these callbacks MPICH frees the communicator's
// list of attributes, so that the attribute with the group cannot be looked up.
typedef struct Freeing {
    MPI_Comm comm;
    const struct Freeing* outer;  // the communicator in whose callback this communicator is freed
} Freeing;

static _Thread_local const Freeing* freeing;

PmpiGroup* pmpi_group_of(MPI_Comm comm) {
    PmpiGroup* g = NULL;
    int found = 0;
    for (const Freeing* f = freeing; NULL != f; f = f->outer)
        if (comm == f->comm) return NULL;
    if (MPI_SUCCESS != PMPI_Comm_get_attr(comm, pmpi.comm_key, &g, &found)) return NULL;
    return found ? g : make(comm);
}

// Calls one of two MPI functions. A pointer to an MPI function would have to be resolved when the library is
// preloaded into a program without MPI, such as a launcher.
static int leave(MPI_Comm* comm, bool disconnects) {
    return disconnects ? PMPI_Comm_disconnect(comm) : PMPI_Comm_free(comm);
}

static int free_comm(MPI_Comm* comm, bool disconnects) {
    PmpiGroup* g = NULL;
    int found = 0;
    if (NULL == comm || MPI_COMM_NULL == *comm) return leave(comm, disconnects);
    // Recorded even if this process has not opened the provider, since other members may have opened theirs.
    const Freeing here = {*comm, freeing};
    if (kPmpiOpen == atomic_load(&pmpi.life) &&
        MPI_SUCCESS == PMPI_Comm_get_attr(*comm, pmpi.comm_key, &g, &found) && found)
        PMPI_Comm_delete_attr(*comm, pmpi.comm_key);
    freeing = &here;
    const int rc = leave(comm, disconnects);
    freeing = here.outer;
    return rc;
}

__attribute__((visibility("default"))) int MPI_Comm_free(MPI_Comm* comm) {
    return free_comm(comm, false);
}

__attribute__((visibility("default"))) int MPI_Comm_disconnect(MPI_Comm* comm) {
    return free_comm(comm, true);
}
