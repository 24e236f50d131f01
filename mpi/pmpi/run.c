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

enum fi_collective_op pmpi_collective_of(PmpiOperation operation) {
    static const enum fi_collective_op kCollectives[kPmpiOperations] = {
        FI_BROADCAST, FI_BARRIER, FI_REDUCE,   FI_ALLREDUCE,      FI_ALLGATHER,     FI_ALLGATHER,
        FI_GATHER,    FI_SCATTER, FI_ALLTOALL, FI_REDUCE_SCATTER, FI_REDUCE_SCATTER};
    return kCollectives[operation];
}

bool pmpi_leave(PmpiOperation operation) {
    (void)atomic_fetch_add_explicit(&pmpi.left[operation], 1, memory_order_relaxed);
    return false;
}

PmpiGroup* pmpi_route(MPI_Comm comm, PmpiOperation operation) {
    PmpiGroup* g = pmpi_group_of(comm);
    if (NULL == g) return NULL;
    const bool serves = kPmpiLeft != g->state && (pmpi.settings.enabled >> operation & 1) &&
                        (pmpi.provider.collectives >> pmpi_collective_of(operation) & 1) &&
                        !(g->refused >> operation & 1);
    if (!serves) (void)pmpi_leave(operation);
    return serves ? g : NULL;
}

bool pmpi_in_range(uint64_t bytes) {
    return bytes > 0 && bytes >= pmpi.settings.min_bytes && bytes <= pmpi.settings.max_bytes;
}

bool pmpi_fail(PmpiGroup* g, PmpiOperation operation, int error, int* rc) {
    pmpi_group_break(g);
    pmpi_trim(g, kPmpiKeptBounce);
    pmpi_say(0, "%s failed on rank %d of %d: %s", pmpi_name(operation), g->rank, g->size, fi_strerror(error));
    *rc = FI_ENOMEM == error ? MPI_ERR_NO_MEM : FI_EMSGSIZE == error ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
    PMPI_Comm_call_errhandler(g->comm, *rc);
    return true;
}

bool pmpi_run(PmpiGroup* g, PmpiOperation operation, const struct fi_mcastcoll_request* given,
              PmpiDeliver deliver, const void* arrival, int* rc) {
    struct fi_mcastcoll_request request = *given;
    request.size = sizeof(request);
    request.collective = pmpi_collective_of(operation);
    if (kPmpiBroken == g->state) return pmpi_fail(g, operation, FI_EOPBADSTATE, rc);
    ssize_t result;
    (void)atomic_fetch_add(&pmpi.running, 1);
    while (-FI_EAGAIN == (result = g->run(g->mc, &request, pmpi_meanwhile, g))) (void)pmpi_meanwhile(g);
    (void)atomic_fetch_sub(&pmpi.running, 1);
    if (-FI_ENOSYS == result || -FI_EOPNOTSUPP == result) {
        pmpi_trim(g, kPmpiKeptBounce);
        if (-FI_ENOSYS == result) g->refused |= 1U << operation;
        if (-FI_ENOSYS == result && 0 == g->rank)
            pmpi_say(1, "the provider has no %s for %d members like these", pmpi_name(operation), g->size);
        return pmpi_leave(operation);
    }
    if (0 == result && NULL != deliver && !deliver(g, arrival)) result = -FI_EOTHER;
    if (0 != result) return pmpi_fail(g, operation, (int)-result, rc);
    pmpi_trim(g, kPmpiKeptBounce);
    (void)atomic_fetch_add_explicit(&pmpi.served[operation], 1, memory_order_relaxed);
    *rc = MPI_SUCCESS;
    return true;
}
