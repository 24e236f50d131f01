// The operations that move bytes.
//
// The packed size of a message, or of one block, is the same on all members, whatever their datatypes; it is
// all that decides.

#include "pmpi.h"

bool pmpi_bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!pmpi_begin(&c, comm, kMccBcast)) return false;
    const int64_t bytes = pmpi_bytes(count, type);
    if (bytes < 0 || root < 0 || root >= c.g->size || !pmpi_in_range((uint64_t)bytes)) return pmpi_leave(&c);
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    return pmpi_run(&c, mcc_lay_bcast(&c.plan, &layout, (size_t)bytes, root), rc);
}

bool pmpi_barrier(MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!pmpi_begin(&c, comm, kMccBarrier)) return false;
    c.plan.whole.datatype = FI_VOID;
    return pmpi_run(&c, 0, rc);
}

// Whether a whole operation of such blocks is served; otherwise the call is left.
static bool take(PmpiCall* c, int64_t block) {
    c->plan.block = (size_t)block;
    return (block > 0 && pmpi_in_range((uint64_t)block * (uint64_t)c->g->size)) || pmpi_leave(c);
}

// `block`: of what this member has to say, only; what MPI does not look at may be anything.
static bool take_layout(PmpiCall* c, const MccLayout* block) {
    return take(c, pmpi_bytes(block->count, block->type));
}

static bool take_rooted(PmpiCall* c, int root, const MccLayout* of_root, const MccLayout* of_others) {
    if (root < 0 || root >= c->g->size) return pmpi_leave(c);
    return take_layout(c, c->g->rank == root ? of_root : of_others);
}

bool pmpi_allgather(MccLayout in, MccLayout out, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return pmpi_begin(&c, comm, kMccAllgather) && take_layout(&c, &out) &&
           pmpi_run(&c, mcc_lay_allgather(&c.plan, &in, &out), rc);
}

bool pmpi_allgatherv(MccLayout in, void* buffer, MccList counts, MccList places, MPI_Datatype type,
                     MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!pmpi_begin(&c, comm, kMccAllgatherv)) return false;
    const MccLayout out = {.base = buffer, .type = type};
    size_t largest = 0;
    if (NULL == counts.at || NULL == places.at || !mcc_measure_blocks(&c.plan, &out, counts, &largest))
        return pmpi_leave(&c);
    return take(&c, (int64_t)largest) &&
           pmpi_run(&c, mcc_lay_allgatherv(&c.plan, &in, &out, counts, places), rc);
}

bool pmpi_gather(MccLayout in, MccLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return pmpi_begin(&c, comm, kMccGather) && take_rooted(&c, root, &out, &in) &&
           pmpi_run(&c, mcc_lay_gather(&c.plan, &in, &out, root), rc);
}

bool pmpi_scatter(MccLayout in, MccLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return pmpi_begin(&c, comm, kMccScatter) && take_rooted(&c, root, &in, &out) &&
           pmpi_run(&c, mcc_lay_scatter(&c.plan, &in, &out, root), rc);
}

bool pmpi_alltoall(MccLayout in, MccLayout out, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return pmpi_begin(&c, comm, kMccAlltoall) && take_layout(&c, &out) &&
           pmpi_run(&c, mcc_lay_alltoall(&c.plan, &in, &out), rc);
}
