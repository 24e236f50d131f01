// A communicator becomes a provider's group once that is worth it, or never does.
//
// Whether it is worth it is counted: so many blocking collectives (coll_mcastcoll_form_after), long ones as
// several. Their order is the same on all members, so all come to it at the same call; non-blocking ones do
// not count, since Open MPI starts some from within its progress. Then all members do the same steps in the
// same order: (1) they open the provider, where this is the first group, and exchange addresses, an allgather
// of the module that was there before; (2) address vector set, locally; (3) agreement; (4) the join, bounded
// by a timeout; (5) agreement again. So either everybody uses the group or nobody, and the allgather keeps a
// late rank's delay out of the join's timeout. Where the join itself had too little time, it is tried again
// later.
//
// That allgather may itself call this communicator's collectives. The module's state says so meanwhile, and
// they go to the previous modules at once.
//
// A group outlives its communicator by coll_mcastcoll_linger: MPI_Comm_free does not synchronise, and a
// slower member may still need its data repaired.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_mcastcoll_select.h"
#include "ompi/constants.h"
#include "opal/runtime/opal_progress.h"

enum { kMaxOrphans = 32 };

static void group_construct(MccGroup* g) {
    memset((char*)g + sizeof(g->super), 0, sizeof(*g) - sizeof(g->super));
    g->join.address = FI_ADDR_NOTAVAIL;
}
OBJ_CLASS_INSTANCE(MccGroup, opal_list_item_t, group_construct, NULL);

static void close_group(MccGroup* g) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const int error = mcc_join_close(&c->fabric, &g->join);
    if (0 != error) MCC_VERBOSE(1, "coll/mcastcoll: closing a group: %s", fi_strerror(error));
    opal_list_remove_item(&c->groups, &g->super);
    if (g->orphan) --c->orphans;
    OBJ_RELEASE(g);
}

void mcc_groups_reap(bool all) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccGroup *g, *next;
    const double now = all ? 0 : mcc_now_s();
    OPAL_LIST_FOREACH_SAFE(g, next, &c->groups, MccGroup) {
        // The list is in the order of creation, near enough to the order of release for the limit.
        // MPI lets communicators be freed before their requests are complete.
        if (g->orphan && mcc_join_is_open(&g->join)) mcc_poll_joins(&c->fabric);
        const bool idle = !mcc_join_is_open(&g->join) && 0 == g->open;
        if (all || (g->orphan && idle && (now >= g->close_at_s || c->orphans > kMaxOrphans))) close_group(g);
    }
}

void mcc_group_orphan(MccGroup* g) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    opal_mutex_lock(&c->lock);
    g->orphan = true;
    g->close_at_s = mcc_now_s() + c->linger_ms * 1e-3;
    ++c->orphans;
    mcc_groups_reap(false);
    opal_mutex_unlock(&c->lock);
}

bool mcc_group_has(const MccModule* m, enum fi_collective_op collective) {
    if (NULL == m->group) return true;
    return 0 != ((mca_coll_mcastcoll_component.offered & ~m->group->refused) >> collective & 1);
}

static int address_of(const void* comm, size_t rank, fi_addr_t* address) {
    return mcc_peers_address((ompi_communicator_t*)(uintptr_t)comm, (int)rank, address);
}

// Local part: 0 or a positive FI_E code. libfabric's own collectives see only what the address vector held
// when its first set was made, hence the whole world first.
static int begin_join(MccGroup* g, ompi_communicator_t* comm, unsigned attempt) {
    fi_addr_t address;
    for (int rank = 0; mcc_fabric_is_eager() && rank < ompi_comm_size(MPI_COMM_WORLD); ++rank) {
        (void)mcc_peers_address(MPI_COMM_WORLD, rank, &address);  // a member's failure shows below
    }
    // The attempt is in it as well: an earlier one may not be over.
    uint32_t key[] = {(uint32_t)comm->c_contextid, attempt};
    return mcc_join_begin(&mca_coll_mcastcoll_component.fabric, &g->join, (size_t)g->size, key, sizeof(key),
                          address_of, comm);
}

static void lock(void) {
    opal_mutex_lock(&mca_coll_mcastcoll_component.lock);
}

static void unlock(void) {
    opal_mutex_unlock(&mca_coll_mcastcoll_component.lock);
}

static int go_on(void* nothing) {
    (void)nothing;
    mcc_wait_step();
    return mca_coll_mcastcoll_component.broken;
}

static int join(MccGroup* g) {
    static const MccWaiting kWaiting = {.lock = lock, .unlock = unlock, .step = go_on};
    MccComponent* c = &mca_coll_mcastcoll_component;
    MCC_VERBOSE(2, "coll/mcastcoll: rank %d of %d joins the group of %s", g->rank, g->size, g->name);
    (void)atomic_fetch_add(&c->waiting, 1);
    const int error = mcc_join(&c->fabric, &g->join, (size_t)g->size, c->join_timeout_ms, &kWaiting, NULL);
    (void)atomic_fetch_sub(&c->waiting, 1);
    return error;
}

static MccGroup* make_group(ompi_communicator_t* comm, unsigned attempt, int* error) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccGroup* g = OBJ_NEW(MccGroup);
    *error = FI_ENOMEM;
    if (NULL == g) return NULL;
    opal_mutex_lock(&c->lock);
    opal_list_append(&c->groups, &g->super);
    snprintf(g->name, sizeof(g->name), "%s", comm->c_name);
    g->rank = ompi_comm_rank(comm);
    g->size = ompi_comm_size(comm);
    *error = 0 != c->broken ? c->broken : begin_join(g, comm, attempt);
    mcc_progress_start();
    opal_mutex_unlock(&c->lock);
    return g;
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

// Whether all members can take part, by their cards as they are now that the provider is open.
static int is_possible(MccModule* m, ompi_communicator_t* comm, bool* possible) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    char reason[kMccReasonBytes] = "";
    opal_mutex_lock(&c->lock);
    mcc_fabric_open();
    opal_mutex_unlock(&c->lock);
    const int rc = mcc_peers_exchange(m, comm, reason);
    *possible = OMPI_SUCCESS == rc && '\0' == reason[0];
    if ('\0' != reason[0]) mcc_report_off(comm, reason);
    return rc;
}

static int form(MccModule* m, ompi_communicator_t* comm) {
    const char* step = "address vector";
    int error = 0, who = -1;
    bool possible = false;
    m->state = kMccForming;
    int rc = is_possible(m, comm, &possible);
    if (!possible) {
        m->state = kMccLeft;
        return rc;
    }
    MccGroup* g = make_group(comm, m->attempts, &error);
    rc = mcc_agree(comm, error, &error, &who);
    if (OMPI_SUCCESS == rc && 0 == error) {
        step = "join";
        error = join(g);
        rc = mcc_agree(comm, error, &error, &who);
    }
    if (OMPI_SUCCESS == rc && 0 == error) {
        m->group = g;
        m->state = kMccServing;
        // Some rules hold inside a site only. A provider that does not tell has one.
        m->sites = 0 != g->join.sites ? g->join.sites : 1;
        if (!mcc_select(mca_coll_mcastcoll_component.rules, m, g->size)) return OMPI_ERR_OUT_OF_RESOURCE;
        report(comm, m, step, who, 0);
        return OMPI_SUCCESS;
    }
    if (NULL != g) mcc_group_orphan(g);
    m->state = kMccLeft;
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
        m->state = mcc_module_fits(m, comm) ? kMccWorthy : kMccLeft;
    }
    if (kMccWorthy != m->state || !mcc_selected(m, kMccBlocking, collective, bytes)) return OMPI_SUCCESS;
    return form(m, comm);
}
