// A communicator becomes a provider's group once that is worth it, or never does: README.md, "When a group
// forms", has the steps. All members come to it at the same call, and either everybody uses the group or
// nobody. Open MPI's progress may call this communicator's collectives meanwhile: the module's state says so,
// and they go to the previous modules at once.
//
// What all members agree on is the worst that happened to anybody: messages up a tree to rank 0 and back,
// with a tag of their own. A blocking allreduce cannot be given up where a rank has died, and a non-blocking
// one of Open MPI's must be started in the same place of the communicator's order on all ranks, among those
// that MPI_Comm_idup starts from within Open MPI's progress. Who does not hear gets an error: what the others
// have heard is not known then, and no member may guess.

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"

void mcc_group_orphan(MccGroup* g) {
    MccComponent* c = &mcc_component;
    pthread_mutex_lock(&c->fabric.lock);
    mcc_join_end(&c->fabric, &g->join, c->linger_ms, true);
    mcc_groups_reap(false);
    pthread_mutex_unlock(&c->fabric.lock);
}

bool mcc_group_has(const MccModule* m, enum fi_collective_op collective) {
    if (NULL == m->group) return true;
    return 0 != ((mcc_component.fabric.collectives & ~m->group->join.refused) >> collective & 1);
}

static bool is_left(ompi_communicator_t* comm, const char* reason) {
    if (0 == ompi_comm_rank(comm))
        MCC_VERBOSE(1, "coll/mcastcoll: %s is left to others: %s", comm->c_name, reason);
    return false;
}

// The one line a user sees when nothing can be served, once.
void mcc_report_off(ompi_communicator_t* comm, const char* reason) {
    MccComponent* c = &mcc_component;
    if (MPI_COMM_WORLD != comm) {
        (void)is_left(comm, reason);
    } else if (0 == ompi_comm_rank(comm) && !c->reported) {
        c->reported = true;
        opal_output(0, "coll/mcastcoll is off, Open MPI's own collectives serve this job: %s", reason);
    }
}

// The same answer on all members. More members than this host has of the job cannot all be here, and only
// where they can are all processes looked up: Open MPI does not know them before somebody asks.
static bool all_on_one_host(ompi_communicator_t* comm) {
    const int size = ompi_comm_size(comm);
    if (size > (int)ompi_process_info.num_local_peers + 1) return false;
    for (int rank = 0; rank < size; ++rank) {
        const ompi_proc_t* proc = ompi_group_peer_lookup(comm->c_local_group, rank);
        if (NULL == proc) return false;
        if (proc != ompi_proc_local() && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)) return false;
    }
    return true;
}

static bool serve_single_host(const MccComponent* c) {
    if (c->single_host >= 0) return 1 == c->single_host;
    return mcc_pml_is("cm");
}

// Whether a group could serve it, by what all members know without a message: the same on all.
static bool fits(MccModule* m, ompi_communicator_t* comm) {
    MccComponent* c = &mcc_component;
    char reason[kMccReasonBytes] = "";
    const int size = ompi_comm_size(comm);
    const bool one_host = all_on_one_host(comm);
    if (!one_host && size < c->min_comm_size)
        return is_left(comm, "few members (coll_mcastcoll_min_comm_size)");
    if (!mcc_peers_agree(comm, &m->hosts, reason)) {
        mcc_report_off(comm, reason);
        return false;
    }
    if (one_host && !serve_single_host(c))
        return is_left(comm, "all on one host (coll_mcastcoll_single_host)");
    // Two hosts at least, though they may have one name.
    m->hosts = one_host ? 1 : m->hosts < 2 ? 2 : m->hosts;
    return mcc_select(c->rules, m, size);
}

// Local part: 0 or a positive FI_E code. libfabric's own collectives see only what the address vector held
// when its first set was made, hence the whole world first.
static int begin_join(MccGroup* g, ompi_communicator_t* comm, unsigned attempt, const MccMeeting* meeting) {
    MccProvider* fabric = &mcc_component.fabric;
    if (mcc_fabric_is_eager() && NULL == fabric->peers) mcc_peers_meet_all();
    // The attempt is in it as well: an earlier one may not be over.
    struct {
        MccContextNumber context;
        uint64_t attempt;
        MccSecret secret;
    } key = {mcc_context_number(comm), attempt, meeting->secret};
    const int error = mcc_join_begin(fabric, &g->join, &key, sizeof(key), meeting->addresses);
    explicit_bzero(&key, sizeof(key));
    return error;
}

static int go_on(void* nothing) {
    (void)nothing;
    mcc_wait_step();
    return mcc_component.broken;
}

static int join(MccGroup* g) {
    MccComponent* c = &mcc_component;
    MCC_VERBOSE(2, "coll/mcastcoll: rank %d of %d joins the group of %s", g->join.rank, g->join.size,
                g->name);
    (void)atomic_fetch_add(&c->waiting, 1);
    const int error = mcc_join(&c->fabric, &g->join, c->join_timeout_ms, go_on, NULL);
    (void)atomic_fetch_sub(&c->waiting, 1);
    return error;
}

static MccGroup* make_group(ompi_communicator_t* comm, unsigned attempt, const MccMeeting* meeting,
                            int* error) {
    MccComponent* c = &mcc_component;
    MccGroup* g = calloc(1, sizeof(*g));
    *error = FI_ENOMEM;
    if (NULL == g) return NULL;
    pthread_mutex_lock(&c->fabric.lock);
    mcc_join_add(&c->fabric, &g->join);
    snprintf(g->name, sizeof(g->name), "%s", comm->c_name);
    g->join.rank = ompi_comm_rank(comm);
    g->join.size = ompi_comm_size(comm);
    *error = 0 != c->broken         ? c->broken
             : !meeting->has_secret ? FI_EKEYREJECTED
                                    : begin_join(g, comm, attempt, meeting);
    mcc_progress_start();
    pthread_mutex_unlock(&c->fabric.lock);
    return g;
}

// Of Open MPI's own tags; those near it belong to its non-blocking collectives, 30,000 calls later.
enum { kAgreeTag = -30100 };

// Others may be in a join, which has its own bound, and this machine may be busy.
enum { kJoinTimes = 6 };

// Of a rank in the tree of agreements: few levels, since where ranks share cores each costs turns on them.
enum { kMostChildren = 32 };

typedef struct {
    ompi_communicator_t* comm;
    double deadline_s;
    int open;
    long long mine, heard[kMostChildren];
    ompi_request_t* requests[kMostChildren];  // those under way, in any order
} Round;

// Sends mine where nothing is to be heard.
static int begin_word(Round* r, int rank, long long* heard) {
    ompi_request_t* request = MPI_REQUEST_NULL;
    const int rc = NULL == heard
                       ? MCA_PML_CALL(isend(&r->mine, 1, MPI_LONG_LONG, rank, kAgreeTag,
                                            MCA_PML_BASE_SEND_STANDARD, r->comm, &request))
                       : MCA_PML_CALL(irecv(heard, 1, MPI_LONG_LONG, rank, kAgreeTag, r->comm, &request));
    if (OMPI_SUCCESS == rc) r->requests[r->open++] = request;
    return rc;
}

static int wait_for_all(Round* r) {
    while (r->open > 0) {
        ompi_request_t** last = &r->requests[r->open - 1];
        while (!REQUEST_COMPLETE(*last)) {
            if (mcc_now_s() > r->deadline_s) return OMPI_ERR_TIMEOUT;
            opal_progress();
        }
        const int rc = (*last)->req_status.MPI_ERROR;
        (void)ompi_request_free(last);
        --r->open;
        if (MPI_SUCCESS != rc) return rc;
    }
    return OMPI_SUCCESS;
}

// The worst goes up to rank 0, and from there down to all.
static int exchange(Round* r, int rank, int size) {
    const int parent = (rank - 1) / kMostChildren;
    const int64_t first = (int64_t)rank * kMostChildren + 1, others = size - first;
    const int count = others < 0 ? 0 : others < kMostChildren ? (int)others : kMostChildren;
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < count && OMPI_SUCCESS == rc; ++i) rc = begin_word(r, (int)first + i, &r->heard[i]);
    if (OMPI_SUCCESS == rc) rc = wait_for_all(r);
    for (int i = 0; i < count; ++i)
        if (r->heard[i] > r->mine) r->mine = r->heard[i];
    if (OMPI_SUCCESS == rc && 0 != rank) {
        rc = begin_word(r, parent, &r->heard[0]);
        if (OMPI_SUCCESS == rc) rc = begin_word(r, parent, NULL);
        if (OMPI_SUCCESS == rc) rc = wait_for_all(r);
        r->mine = r->heard[0];
    }
    for (int i = 0; i < count && OMPI_SUCCESS == rc; ++i) rc = begin_word(r, (int)first + i, NULL);
    return OMPI_SUCCESS == rc ? wait_for_all(r) : rc;
}

// All members learn the worst outcome: 0, or an error and one of the ranks that has it. An Open MPI code; an
// error where somebody did not answer in time.
static int agree(ompi_communicator_t* comm, int error, int* agreed_error, int* agreed_rank) {
    const int rank = ompi_comm_rank(comm), size = ompi_comm_size(comm);
    Round* r = calloc(1, sizeof(*r));
    if (NULL == r) return OMPI_ERR_OUT_OF_RESOURCE;
    r->comm = comm;
    r->deadline_s = mcc_now_s() + kJoinTimes * 1e-3 * mcc_join_ms(mcc_component.join_timeout_ms, size);
    r->mine = mcc_word(error, rank);
    const int rc = exchange(r, rank, size);
    *agreed_error = mcc_word_error(r->mine);
    *agreed_rank = mcc_word_rank(r->mine);
    if (0 == r->open) free(r);  // else what is under way still writes into it
    return rc;
}

// Later, where there was not time enough: a busy machine may be less so then. Each time costs the join's
// timeout, so there are few, ever further apart.
static void try_again(MccModule* m, int error) {
    enum { kMostAttempts = 4, kAtLeast = 100, kTimes = 10 };
    if (FI_ETIMEDOUT != error || ++m->attempts >= kMostAttempts) return;
    m->wanted = (m->wanted > kAtLeast ? m->wanted : kAtLeast) * kTimes;
    m->seen = 0;
    m->state = kMccFresh;
}

static void report(ompi_communicator_t* comm, const MccModule* m, const char* step, int who, int error) {
    if (0 != ompi_comm_rank(comm)) return;
    if (0 == error) {
        MCC_VERBOSE(1, "coll/mcastcoll serves %s, %d members on %d hosts", comm->c_name, ompi_comm_size(comm),
                    m->hosts);
        return;
    }
    char later[64] = "";
    if (kMccLeft != m->state)
        snprintf(later, sizeof(later), "; to be tried again after %zu collectives", m->wanted);
    opal_output(0,
                "coll/mcastcoll leaves communicator %s (%d ranks) to Open MPI's own collectives: %s "
                "failed on rank %d: %s%s",
                comm->c_name, ompi_comm_size(comm), step, who, fi_strerror(error), later);
}

// Somebody has no answer: perhaps dead, and nobody knows what the others do now. An error is all that is
// left.
static int report_silence(ompi_communicator_t* comm, const char* step, int rc) {
    opal_output(0,
                "coll/mcastcoll: no agreement on communicator %s, rank %d of %d, after its %s: a rank is "
                "gone, or stopped",
                comm->c_name, ompi_comm_rank(comm), ompi_comm_size(comm), step);
    return rc;
}

// What the members tell each other, its addresses to be freed, where all can take part now that the provider
// is open; else there are none.
static int meet(MccModule* m, ompi_communicator_t* comm, MccMeeting* meeting) {
    MccComponent* c = &mcc_component;
    char reason[kMccReasonBytes] = "";
    pthread_mutex_lock(&c->fabric.lock);
    mcc_fabric_open();
    pthread_mutex_unlock(&c->fabric.lock);
    int lost = -1;
    const int error = mcc_meeting_hold(comm, meeting, reason, &lost);
    if ('\0' != reason[0]) mcc_report_off(comm, reason);
    if (0 == error && '\0' == reason[0]) return OMPI_SUCCESS;
    free(meeting->addresses);
    meeting->addresses = NULL;
    explicit_bzero(&meeting->secret, sizeof(meeting->secret));
    m->state = kMccLeft;
    if (0 == error) return OMPI_SUCCESS;
    // Open MPI's own collectives would wait for it without end.
    if (!c->disable_on_error) m->state = kMccBroken;
    char who[32] = "a rank";
    if (lost >= 0) snprintf(who, sizeof(who), "rank %d", lost);
    opal_output(0, "coll/mcastcoll: no group on communicator %s, rank %d of %d: %s is gone: %s", comm->c_name,
                ompi_comm_rank(comm), ompi_comm_size(comm), who, fi_strerror(error));
    return mcc_error_class(error);
}

static int form(MccModule* m, ompi_communicator_t* comm) {
    const char* step = "address vector";
    int error = 0, who = -1;
    MccMeeting meeting = {.addresses = NULL};
    m->state = kMccForming;
    int rc = meet(m, comm, &meeting);
    if (NULL == meeting.addresses) return rc;
    MccGroup* g = make_group(comm, m->attempts, &meeting, &error);
    free(meeting.addresses);
    explicit_bzero(&meeting.secret, sizeof(meeting.secret));
    rc = agree(comm, error, &error, &who);
    if (OMPI_SUCCESS == rc && 0 == error) {
        step = "join";
        error = join(g);
        rc = agree(comm, error, &error, &who);
    }
    if (OMPI_SUCCESS == rc && 0 == error) {
        m->group = g;
        m->state = kMccServing;
        pthread_mutex_lock(&mcc_component.fabric.lock);
        mcc_stand_in_for(g);
        pthread_mutex_unlock(&mcc_component.fabric.lock);
        // Some rules hold inside a site only. A provider that does not tell has one.
        m->sites = 0 != g->join.sites ? g->join.sites : 1;
        if (!mcc_select(mcc_component.rules, m, g->join.size)) return OMPI_ERR_OUT_OF_RESOURCE;
        report(comm, m, step, who, 0);
        return OMPI_SUCCESS;
    }
    if (NULL != g) mcc_group_orphan(g);
    // As in meet().
    m->state = OMPI_SUCCESS != rc && !mcc_component.disable_on_error ? kMccBroken : kMccLeft;
    if (OMPI_SUCCESS != rc) return report_silence(comm, step, rc);
    try_again(m, error);
    report(comm, m, step, who, error);
    return OMPI_SUCCESS;
}

int mcc_group_consider(MccModule* m, ompi_communicator_t* comm, MccCollective collective, size_t bytes) {
    enum { kBytesOfOne = 16384 };
    if (kMccFresh == m->state) {
        m->seen += 1 + bytes / kBytesOfOne;
        if (m->seen <= m->wanted) return OMPI_SUCCESS;
        m->state = fits(m, comm) ? kMccWorthy : kMccLeft;
    }
    if (kMccWorthy != m->state || kMccPrevious == mcc_selected(m, kMccBlocking, collective, bytes))
        return OMPI_SUCCESS;
    return form(m, comm);
}
