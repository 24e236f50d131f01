// The reductions. Elements, operator and counts decide, which MPI wants to be the same on all members.
//
// libfabric deals the result of a reduce_scatter out itself (as many elements for everybody, one more for
// each of the first few); MPI's is served where its counts say the same.

#include "core/types.h"
#include "pmpi.h"

// Fills in what describes the elements; otherwise the call is left.
static bool take(PmpiCall* c, MPI_Count count, MPI_Datatype type, MPI_Op op, size_t* width) {
    struct fi_mcastcoll_request* whole = &c->plan.whole;
    whole->count = (size_t)count;
    return (count >= 0 && mcc_reduction(type, op, pmpi_face.width, &whole->datatype, &whole->op, width) &&
            mcc_provider_has(&pmpi.provider, mcc_collective_ops[c->operation], whole->datatype, whole->op) &&
            (uint64_t)count <= UINT64_MAX / *width && pmpi_in_range((uint64_t)count * *width)) ||
           pmpi_leave(c);
}

bool pmpi_allreduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    int* rc) {
    PmpiCall c;
    size_t width = 0;
    if (!pmpi_begin(&c, comm, kMccAllreduce) || !take(&c, count, type, op, &width)) return false;
    mcc_lay_reduction(&c.plan, FI_ALLREDUCE, in, out, 0);
    return pmpi_run(&c, 0, rc);
}

bool pmpi_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                 MPI_Comm comm, int* rc) {
    PmpiCall c;
    size_t width = 0;
    if (!pmpi_begin(&c, comm, kMccReduce)) return false;
    if (root < 0 || root >= c.g->size) return pmpi_leave(&c);
    if (!take(&c, count, type, op, &width)) return false;
    mcc_lay_reduction(&c.plan, FI_REDUCE, in, out, root);
    return pmpi_run(&c, 0, rc);
}

static bool scatter(PmpiCall* c, const MccDeal* deal, const void* in, void* out, MPI_Datatype type, MPI_Op op,
                    int* rc) {
    size_t width = 0;
    return take(c, deal->total, type, op, &width) &&
           pmpi_run(c, mcc_lay_deal(&c->plan, deal, in, out, width, false), rc);
}

bool pmpi_reduce_scatter(const void* in, void* out, MccList counts, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, int* rc) {
    PmpiCall c;
    MccDeal deal;
    if (!pmpi_begin(&c, comm, kMccReduceScatter)) return false;
    if (NULL == counts.at || !mcc_deal_counts(&c.plan, counts, &deal) || !deal.even) return pmpi_leave(&c);
    return scatter(&c, &deal, in, out, type, op, rc);
}

bool pmpi_reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm, int* rc) {
    PmpiCall c;
    MccDeal deal;
    if (!pmpi_begin(&c, comm, kMccReduceScatterBlock)) return false;
    if (!mcc_deal_alike(&c.plan, count, &deal)) return pmpi_leave(&c);
    return scatter(&c, &deal, in, out, type, op, rc);
}
