// A communicator becomes a provider's group at its first collective, or never does.
//
// All members do the same steps in the same order: (1) addresses and the address vector set, locally; (2)
// agreement, an allreduce of the module that was there before; (3) the join, bounded by a timeout; (4)
// agreement again. So either everybody uses the group or nobody, and the allreduce of step 2 keeps a late
// rank's delay out of the join's timeout.
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
    g->address = FI_ADDR_NOTAVAIL;
}
OBJ_CLASS_INSTANCE(MccGroup, opal_list_item_t, group_construct, NULL);

static void close_group(MccGroup* g) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    int rc = NULL != g->mc ? fi_close(&g->mc->fid) : 0;
    if (0 == rc && NULL != g->set) rc = fi_close(&g->set->fid);
    if (0 != rc) MCC_VERBOSE(1, "coll/mcastcoll: closing a group: %s", fi_strerror(-rc));
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
        const bool idle = g->joined && 0 == g->open;
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
    const unsigned has = mca_coll_mcastcoll_component.offered & ~(NULL != m->group ? m->group->refused : 0);
    return 0 != (has >> collective & 1);
}

// Local part: 0 or a positive FI_E code. The set starts with one address and is then filled: the one form of
// fi_av_set that libfabric's own implementation and others read alike. That implementation also sees only
// what the address vector held when its first set was made, hence the whole world first.
static int form_set(MccGroup* g, ompi_communicator_t* comm) {
    MccProvider* fabric = &mca_coll_mcastcoll_component.fabric;
    const int size = ompi_comm_size(comm);
    // Threads may join groups of the same members in another order on each rank: the communicator's number
    // tells them apart, where the provider looks at it.
    uint32_t key = (uint32_t)comm->c_contextid;
    struct fi_av_set_attr attr = {
        .count = (size_t)size, .stride = 1, .comm_key_size = sizeof(key), .comm_key = (uint8_t*)&key};
    fi_addr_t address;
    for (int rank = 0; rank < ompi_comm_size(MPI_COMM_WORLD); ++rank) {
        (void)mcc_peers_address(MPI_COMM_WORLD, rank, &address);  // a member's failure shows below
    }
    int rc = 0;
    for (int rank = 0; rank < size; ++rank) {
        const int error = mcc_peers_address(comm, rank, &address);
        if (0 != error) return error;
        if (0 == rank) {
            attr.start_addr = attr.end_addr = address;
            rc = fi_av_set(fabric->av, &attr, &g->set, NULL);
        } else {
            rc = fi_av_set_insert(g->set, address);
        }
        if (0 != rc) return -rc;
    }
    return -fi_av_set_addr(g->set, &g->address);
}

// What the provider has beyond libfabric's own calls: operations that run inside it, and how many sites the
// members are in. Whether operations run there or are posted and polled for is nobody else's business: the
// members need not do the same.
static void find_extensions(MccGroup* g) {
    struct fi_mcastcoll_group_ops* ops = NULL;
    g->run = mcc_provider_run(g->mc);
    struct fi_mcastcoll_group_shape shape;
    if (!FI_CHECK_OP(g->mc->fid.ops, struct fi_ops, ops_open)) return;  // fi_open_ops() does not look
    if (0 != fi_open_ops(&g->mc->fid, FI_MCASTCOLL_GROUP_OPS, 0, (void**)&ops, NULL) || NULL == ops) return;
    if (ops->size >= offsetof(struct fi_mcastcoll_group_ops, get_shape) + sizeof(ops->get_shape) &&
        0 == ops->get_shape(g->mc, &shape))
        g->sites = shape.sites;
    if (ops->size >= offsetof(struct fi_mcastcoll_group_ops, get_asked) + sizeof(ops->get_asked))
        g->get_asked = ops->get_asked;
}

void mcc_group_ready(MccGroup* g) {
    g->address = fi_mc_addr(g->mc);
    find_extensions(g);
}

static int join(MccGroup* g) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const double deadline = mcc_now_s() + c->join_timeout_ms * 1e-3;
    int rc;
    (void)atomic_fetch_add(&c->waiting, 1);
    for (;;) {
        opal_mutex_lock(&c->lock);
        rc = fi_join_collective(c->fabric.ep, g->address, g->set, 0, &g->mc, &g->join.context);
        opal_mutex_unlock(&c->lock);
        if (-FI_EAGAIN != rc || mcc_now_s() > deadline) break;
        mcc_wait_step();
    }
    int error = -rc;
    while (0 == error && !g->join.done && 0 == c->broken) {
        opal_mutex_lock(&c->lock);
        mcc_fabric_poll_events();
        opal_mutex_unlock(&c->lock);
        if (g->join.done) break;
        mcc_wait_step();
        if (mcc_now_s() > deadline) error = FI_ETIMEDOUT;
    }
    (void)atomic_fetch_sub(&c->waiting, 1);
    if (0 == error) error = 0 != c->broken ? c->broken : g->join.error;
    g->joined = FI_ETIMEDOUT != error;
    if (0 == error) mcc_group_ready(g);
    return error;
}

// All members learn the worst outcome: 0, or an error and one of the ranks that has it.
static int agree(MccModule* m, ompi_communicator_t* comm, int error, int* agreed_error, int* agreed_rank) {
    int mine[2] = {error, 0 == error ? -1 : ompi_comm_rank(comm)};
    long long key = (long long)mine[0] << 32 | (unsigned)(mine[1] + 1);
    long long worst = 0;
    const MccPrevious* previous = &m->previous[kMccBlocking][kMccAllreduce];
    const int rc = ((mca_coll_base_module_allreduce_fn_t)previous->function)(&key, &worst, 1, MPI_LONG_LONG,
                                                                             MPI_MAX, comm, previous->module);
    *agreed_error = (int)(worst >> 32);
    *agreed_rank = (int)(worst & 0xffffffff) - 1;
    return rc;
}

MccGroup* mcc_group_form(ompi_communicator_t* comm, int* error) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    MccGroup* g = OBJ_NEW(MccGroup);
    *error = FI_ENOMEM;
    if (NULL == g) return NULL;
    opal_list_append(&c->groups, &g->super);
    g->joined = true;  // nothing is under way yet
    snprintf(g->name, sizeof(g->name), "%s", comm->c_name);
    g->rank = ompi_comm_rank(comm);
    g->size = ompi_comm_size(comm);
    *error = 0 != c->broken ? c->broken : form_set(g, comm);
    mcc_progress_start();
    return g;
}

void mcc_group_report(const ompi_communicator_t* comm, const MccModule* m, const char* step, int who,
                      int error) {
    if (0 != ompi_comm_rank(comm)) return;
    if (0 == error) {
        MCC_VERBOSE(1, "coll/mcastcoll serves %s, %d members on %d hosts", comm->c_name, ompi_comm_size(comm),
                    m->hosts);
        return;
    }
    opal_output(0,
                "coll/mcastcoll leaves communicator %s (%d ranks) to Open MPI's own collectives: %s "
                "failed on rank %d: %s",
                comm->c_name, ompi_comm_size(comm), step, who, fi_strerror(error));
}

// Returns an Open MPI code; the module's state says whether the group serves or the others do.
int mcc_group_setup(MccModule* m, ompi_communicator_t* comm) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const char* step = "address vector";
    int error = 0;
    int who = -1;
    opal_mutex_lock(&c->lock);
    MccGroup* g = mcc_group_form(comm, &error);
    opal_mutex_unlock(&c->lock);
    int rc = agree(m, comm, error, &error, &who);
    if (OMPI_SUCCESS == rc && 0 == error) {
        step = "join";
        error = join(g);
        rc = agree(m, comm, error, &error, &who);
    }
    if (OMPI_SUCCESS == rc && 0 == error) {
        m->group = g;
        m->state = kMccServing;
        // Some rules hold inside a site only. A provider that does not tell has one.
        m->sites = 0 != g->sites ? g->sites : 1;
        if (!mcc_select(c->rules, m, g->size)) return OMPI_ERR_OUT_OF_RESOURCE;
        mcc_group_report(comm, m, step, who, 0);
        return OMPI_SUCCESS;
    }
    if (NULL != g) mcc_group_orphan(g);
    m->state = kMccLeft;
    mcc_group_report(comm, m, step, who, error);
    return rc;
}
