// One operation, from the decision who serves it to its end.
//
// No lock is held while it runs: two threads with two communicators must not wait for each other, since
// another rank's threads may come in the other order. A group is used by one thread at a time, since MPI has
// a communicator's collectives called one after the other.
//
// A provider that answers FI_ENOSYS does so on all members of the group and before anything was begun; from
// then on PMPI serves that operation on this communicator. After any other failure the members may differ
// about what was done, and the communicator's collectives end with errors.

#include <stdio.h>

#include "pmpi.h"

static bool leave(MccCollective operation) {
    (void)atomic_fetch_add_explicit(&pmpi.left[operation], 1, memory_order_relaxed);
    return false;
}

bool pmpi_leave(const PmpiCall* c) {
    return leave(c->operation);
}

bool pmpi_begin(PmpiCall* c, MPI_Comm comm, MccCollective operation) {
    PmpiGroup* g = pmpi_group_of(comm);
    if (NULL == g) return false;
    const enum fi_collective_op collective = mcc_collective_ops[operation];
    if (kPmpiLeft == g->state || 0 == (pmpi.settings.enabled >> operation & 1) ||
        !mcc_provider_has(&pmpi.provider, collective, FI_VOID, FI_NOOP) || 0 != (g->refused >> operation & 1))
        return leave(operation);
    mcc_begin_plan(&c->plan, &pmpi_face, (size_t)g->size, (size_t)g->rank);
    c->plan.whole.collective = collective;
    c->g = g;
    c->operation = operation;
    return true;
}

bool pmpi_in_range(uint64_t bytes) {
    return bytes > 0 && bytes >= pmpi.settings.min_bytes && bytes <= pmpi.settings.max_bytes;
}

static bool fail(PmpiCall* c, int error, int* rc) {
    PmpiGroup* g = c->g;
    const char* name = mcc_collective_names[c->operation];
    pmpi_group_break(g);
    mcc_bounce_trim(&g->bounce, kMccKeptBounce);
    pmpi_say(0, "%s failed on rank %d of %d: %s", name, g->rank, g->size, fi_strerror(error));
    *rc = mcc_error_class(error);
    PMPI_Comm_call_errhandler(g->comm, *rc);
    return true;
}

bool pmpi_run(PmpiCall* c, int error, int* rc) {
    PmpiGroup* g = c->g;
    if (0 == error && kPmpiBroken == g->state) error = FI_EOPBADSTATE;
    if (0 != error) return fail(c, error, rc);
    ssize_t result;
    mcc_enter(&pmpi.stand_in);
    while (-FI_EAGAIN == (result = g->join.run(g->join.mc, &c->plan.whole, pmpi_meanwhile, g)))
        (void)pmpi_meanwhile(g);
    mcc_leave(&pmpi.stand_in);
    if (-FI_ENOSYS == result || -FI_EOPNOTSUPP == result) {
        mcc_bounce_trim(&g->bounce, kMccKeptBounce);
        if (-FI_ENOSYS == result) g->refused |= 1U << c->operation;
        if (-FI_ENOSYS == result && 0 == g->rank)
            pmpi_say(1, "the provider has no %s for %d members like these",
                     mcc_collective_names[c->operation], g->size);
        return pmpi_leave(c);
    }
    if (0 == result && !mcc_deliver(&c->plan)) result = -FI_EOTHER;
    if (0 != result) return fail(c, (int)-result, rc);
    mcc_bounce_trim(&g->bounce, kMccKeptBounce);
    (void)atomic_fetch_add_explicit(&pmpi.served[c->operation], 1, memory_order_relaxed);
    *rc = MPI_SUCCESS;
    return true;
}
