// Forms a provider group for a communicator when this pays, or leaves the communicator to the previous
// modules. README.md, "When a group forms", lists the steps. All members start at the same call, and either
// all members use the group or none. Open MPI's progress may call collectives of this communicator meanwhile:
// these go to the previous modules at once, because the module's state is kMccForming.
//
// Between the steps the members agree on the worst result (_handshake.c). A living process is waited for
// without limit, as in Open MPI's own collectives, whether it computes, is stopped, or is in a join that has
// not failed yet. A lost member ends the waiting.

#include <math.h>

#include "coll_mcastcoll.h"
#include "ompi/group/group.h"
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
        MCC_VERBOSE(1, "coll/mcastcoll leaves %s to Open MPI's own collectives: %s", comm->c_name, reason);
    return false;
}

// Prints one line for the user when the component cannot serve the job.
void mcc_report_off(ompi_communicator_t* comm, const char* reason) {
    MccComponent* c = &mcc_component;
    if (MPI_COMM_WORLD != comm) {
        (void)is_left(comm, reason);
    } else if (0 == ompi_comm_rank(comm) && !c->reported) {
        c->reported = true;
        opal_output(0, "coll/mcastcoll is off, Open MPI's own collectives serve this job: %s", reason);
    }
}

// Returns whether all members are on this host. The result is the same on every member. A communicator with
// more members than this host has processes cannot be on one host. Only the members of smaller communicators
// are looked up, because each look-up makes Open MPI create a record of the process.
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

// Returns whether a group could serve the communicator, from data known to every member without a message.
// The result is the same on every member.
static bool fits(MccModule* m, ompi_communicator_t* comm) {
    MccComponent* c = &mcc_component;
    char reason[kMccReasonBytes] = "";
    const int size = ompi_comm_size(comm);
    const bool one_host = all_on_one_host(comm);
    if (!one_host && size < c->min_comm_size)
        return is_left(comm, "it has fewer members than coll_mcastcoll_min_comm_size");
    if (!mcc_peers_agree(comm, &m->hosts, reason)) {
        mcc_report_off(comm, reason);
        return false;
    }
    if (one_host && !serve_single_host(c))
        return is_left(comm, "all members are on one host (coll_mcastcoll_experiment single_host)");
    if (!mcc_peers_choose_address(comm, reason)) {
        mcc_report_off(comm, reason);
        return false;
    }
    // Hosts are counted by name, and several hosts may have the same name: members on more than one host
    // count as at least two hosts.
    m->hosts = one_host ? 1 : m->hosts < 2 ? 2 : m->hosts;
    return mcc_select(c->rules, m, size);
}

// Does the local part of a join. Returns 0 or a positive FI_E code. libfabric's own collectives see only the
// addresses that the address vector held when its first set was made, so the addresses of the whole job are
// inserted first.
static int begin_join(MccGroup* g, ompi_communicator_t* comm, unsigned attempt,
                      const MccHandshake* handshake) {
    MccProvider* fabric = &mcc_component.fabric;
    char reason[kMccReasonBytes];
    if (!mcc_descriptors_left(kMccDescriptorsOfGroup, reason)) return FI_EMFILE;
    if (mcc_fabric_is_eager() && NULL == fabric->peers) mcc_peers_insert_all();
    // The key contains the attempt, since an earlier attempt may still be open.
    struct {
        MccContextNumber context;
        uint64_t attempt;
        MccSecret secret;
    } key = {mcc_context_number(comm), attempt, handshake->secret};
    const int error = mcc_join_begin(fabric, &g->join, &key, sizeof(key), handshake->addresses);
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

static MccGroup* make_group(ompi_communicator_t* comm, unsigned attempt, const MccHandshake* handshake,
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
    *error = 0 != c->broken           ? c->broken
             : !handshake->has_secret ? FI_EKEYREJECTED
                                      : begin_join(g, comm, attempt, handshake);
    mcc_progress_start();
    pthread_mutex_unlock(&c->fabric.lock);
    return g;
}

// Returns whether the error means that the network did not deliver data.
static bool is_of_network(int error) {
    return FI_ETIMEDOUT == error || FI_EHOSTUNREACH == error;
}

static void put_off(MccModule* m) {
    enum { kMinWanted = 100, kTimes = 10 };
    m->wanted = (m->wanted > kMinWanted ? m->wanted : kMinWanted) * kTimes;
    m->seen = 0;
    m->state = kMccFresh;
}

// Schedules another attempt after a network failure, since a busy machine may be less busy later. Each
// attempt may cost the join's timeout, so there are at most four, at growing distances.
static void try_again(MccModule* m, int error) {
    enum { kMaxAttempts = 4 };
    if (is_of_network(error) && ++m->attempts < kMaxAttempts) put_off(m);
}

// Records the result of a join. A join between hosts usually times out for a reason that affects every
// communicator of the job, such as a firewall. So for some time no communicator with this process begins
// another join between hosts.
static void note_join(const MccModule* m, int error) {
    MccComponent* c = &mcc_component;
    static const double kFirstBackoffS = 60, kTimes = 4, kLongestBackoffS = 3600;
    if (m->hosts < 2) return;
    pthread_mutex_lock(&c->fabric.lock);
    if (is_of_network(error)) {
        c->backoff_s = c->backoff_s > 0 ? fmin(kTimes * c->backoff_s, kLongestBackoffS) : kFirstBackoffS;
        c->backoff_until_s = mcc_now_s() + c->backoff_s;
    } else if (0 == error) {
        c->backoff_s = 0;
    }
    pthread_mutex_unlock(&c->fabric.lock);
}

static bool wants_to_join(const MccModule* m) {
    MccComponent* c = &mcc_component;
    pthread_mutex_lock(&c->fabric.lock);
    const bool backs_off = m->hosts > 1 && c->backoff_s > 0 && mcc_now_s() < c->backoff_until_s;
    pthread_mutex_unlock(&c->fabric.lock);
    return !backs_off;
}

static void report(ompi_communicator_t* comm, const MccModule* m, const char* step, int rank, int error) {
    if (0 != ompi_comm_rank(comm)) return;
    if (0 == error) {
        MCC_VERBOSE(1, "coll/mcastcoll serves %s, %d members on %d host%s", comm->c_name,
                    ompi_comm_size(comm), m->hosts, 1 == m->hosts ? "" : "s");
        return;
    }
    // A permanent failure is printed once, since later communicators have the same failure.
    static int reported;
    if (kMccLeft == m->state && error == reported) return;
    reported = error;
    char later[64] = "";
    if (kMccLeft != m->state)
        snprintf(later, sizeof(later), "; to be tried again after %zu collectives", m->wanted);
    opal_output(0,
                "coll/mcastcoll leaves communicator %s (%d ranks) to Open MPI's own collectives: %s "
                "failed on rank %d: %s%s",
                comm->c_name, ompi_comm_size(comm), step, rank, fi_strerror(error), later);
}

// Reports a lost member. The surviving members may have completed different steps, so none of them can
// continue.
static int report_loss(MccModule* m, ompi_communicator_t* comm, int error, int lost) {
    char name[32] = "a rank";
    // Open MPI's own collectives would wait for the lost member forever.
    m->state = mcc_component.disable_on_error ? kMccLeft : kMccBroken;
    if (lost >= 0) snprintf(name, sizeof(name), "rank %d", lost);
    opal_output(0,
                "coll/mcastcoll: a call on communicator %s fails on rank %d of %d, because %s was lost: %s",
                comm->c_name, ompi_comm_rank(comm), ompi_comm_size(comm), name, fi_strerror(error));
    return mcc_error_class(error);
}

// Returns whether the group needs datagrams between hosts. Providers other than mcastcoll may not use any.
static bool needs_datagrams(const MccModule* m) {
    return m->hosts > 1 && !mcc_fabric_is_eager();
}

// Sends datagrams to rank 0 if this member is the sender of its host.
static void probe(const MccModule* m, ompi_communicator_t* comm, MccHandshake* handshake) {
    const MccProvider* fabric = &mcc_component.fabric;
    const MccContextNumber number = mcc_context_number(comm);
    if (!needs_datagrams(m)) return;
    handshake->probe.group = mcc_digest(kMccDigest, &number, sizeof(number));
    handshake->probe.count = mcc_peers_senders(comm, handshake->probe.ranks);
    mcc_probe_send(&handshake->probe, ompi_comm_rank(comm), fabric->address, handshake->addresses,
                   fabric->address_bytes);
}

// Begins the setup handshake. True: all members can take part and want to, and the handshake continues.
// False: the handshake has ended, the reason is reported, and *rc is the caller's result.
static bool begin_handshake(MccModule* m, ompi_communicator_t* comm, MccHandshake* handshake, int* rc) {
    MccComponent* c = &mcc_component;
    char reason[kMccReasonBytes] = "";
    pthread_mutex_lock(&c->fabric.lock);
    mcc_fabric_open();
    pthread_mutex_unlock(&c->fabric.lock);
    if (needs_datagrams(m) && 0 == ompi_comm_rank(comm) && c->opened)
        mcc_probe_open(&handshake->probe, c->fabric.address, c->fabric.address_bytes);
    int lost = -1;
    int error = mcc_handshake_begin(comm, wants_to_join(m), handshake, reason, &lost);
    MccAgreed agreed;
    // Every member compares the same addresses and comes to the same result.
    if (0 == error && NULL != handshake->state && !mcc_peers_distinct(comm, handshake->addresses, reason))
        error = mcc_handshake_agree(handshake, FI_EADDRNOTAVAIL, true, &agreed, &lost);
    if (0 == error && NULL != handshake->state) return true;
    *rc = 0 != error ? report_loss(m, comm, error, lost) : OMPI_SUCCESS;
    if (0 != error) return false;
    m->state = kMccLeft;
    if ('\0' != reason[0]) {
        mcc_report_off(comm, reason);
    } else {
        put_off(m);
        snprintf(reason, sizeof(reason), "rank %d postpones further joins, because a join has failed",
                 handshake->unwilling);
        (void)is_left(comm, reason);
    }
    return false;
}

// Joins the group. After each step, the members agree on the worst result. Returns an error code if a member
// was lost. Otherwise *group is the group, or NULL if *step failed on some member.
static int join_all(MccModule* m, ompi_communicator_t* comm, MccHandshake* handshake, const char** step,
                    MccAgreed* agreed, MccGroup** group) {
    int error = 0, lost = -1;
    probe(m, comm, handshake);
    MccGroup* g = make_group(comm, m->attempts, handshake, &error);
    explicit_bzero(&handshake->secret, sizeof(handshake->secret));
    *step = "address vector";
    int rc = mcc_handshake_agree(handshake, error, false, agreed, &lost);
    if (FI_EKEYREJECTED == agreed->error) *step = "decrypting the group's secret";
    if (0 == rc && FI_EHOSTUNREACH == agreed->error) {
        *step = "UDP to rank 0's host (a firewall?)";
        note_join(m, agreed->error);
    }
    if (0 == rc && 0 == agreed->error) {
        error = join(g);
        // Without shared memory (a full /dev/shm), members on one host would send multicasts to each other.
        const bool apart = 0 == error && 1 == m->hosts && g->join.hosts > 1;
        *step = apart ? "shared memory of the host" : "join";
        rc = mcc_handshake_agree(handshake, apart ? FI_EOPNOTSUPP : error, true, agreed, &lost);
        if (0 == rc) note_join(m, agreed->error);
    }
    *group = g;
    if (0 == rc && 0 == agreed->error) return OMPI_SUCCESS;
    if (NULL != g) mcc_group_orphan(g);
    *group = NULL;
    return 0 == rc ? OMPI_SUCCESS : report_loss(m, comm, rc, lost);
}

static int form(MccModule* m, ompi_communicator_t* comm) {
    const char* step = "";
    MccAgreed agreed = {.rank = -1};
    MccHandshake handshake = {.probe = {.socket = -1}};
    MccGroup* g = NULL;
    int rc = OMPI_SUCCESS;
    m->state = kMccForming;
    if (begin_handshake(m, comm, &handshake, &rc)) rc = join_all(m, comm, &handshake, &step, &agreed, &g);
    explicit_bzero(&handshake.secret, sizeof(handshake.secret));
    mcc_probe_close(&handshake.probe);
    free(handshake.addresses);
    if (OMPI_SUCCESS != rc || (NULL == g && 0 == agreed.error)) return rc;
    if (NULL == g) {
        m->state = kMccLeft;
        try_again(m, agreed.error);
        report(comm, m, step, agreed.rank, agreed.error);
        return OMPI_SUCCESS;
    }
    m->group = g;
    m->state = kMccServing;
    pthread_mutex_lock(&mcc_component.fabric.lock);
    mcc_progress_thread_for(g);
    pthread_mutex_unlock(&mcc_component.fabric.lock);
    // Some rules apply within one site only. A provider that does not report sites counts as having one.
    // Several hosts may have the same name, so the provider's number of hosts replaces the number of names.
    m->sites = 0 != g->join.sites ? g->join.sites : 1;
    if (0 != g->join.hosts) m->hosts = (int)g->join.hosts;
    if (!mcc_select(mcc_component.rules, m, g->join.size)) {
        g->failed = true;  // the group is already in use on the other members
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    report(comm, m, step, 0, 0);
    return OMPI_SUCCESS;
}

int mcc_group_consider(MccModule* m, ompi_communicator_t* comm, MccCollective collective, size_t bytes) {
    enum { kBytesOfOne = 16384 };
    if (kMccFresh == m->state) {
        m->seen += 1 + bytes / kBytesOfOne;
        if (m->seen <= m->wanted) return OMPI_SUCCESS;
        m->state = fits(m, comm) ? kMccDue : kMccLeft;
    }
    if (kMccDue != m->state || kMccPrevious == mcc_selected(m, kMccBlocking, collective, bytes))
        return OMPI_SUCCESS;
    return form(m, comm);
}
