// MPI_Allreduce, Reduce, Reduce_scatter and Reduce_scatter_block as jobs.
//
// Who serves a call is decided on datatype, operator and counts, which MPI wants to be equal on all ranks.
// Long vectors of the first two are cut into segments of whole elements. libfabric's reduce_scatter deals the
// vector as evenly as it can; other counts become an allreduce while the vector is short, and are left to
// others when it is not.

#include "coll_mcastcoll_job.h"
#include "core/types.h"
#include "ompi/constants.h"

// Fills in datatype, operator, count and width. The bytes of the vector, or 0: left to others.
static size_t begin(MccJob* job, size_t count, ompi_datatype_t* type, MPI_Op op) {
    struct fi_mcastcoll_request* whole = &job->plan.whole;
    if (!mcc_reduction(type, op, mcc_width, &whole->datatype, &whole->op, &job->width)) return 0;
    whole->count = count;
    const size_t most = mca_coll_mcastcoll_component.max_message;
    return count <= most / job->width ? count * job->width : 0;
}

// Open MPI finds the number of a new communicator with such ones, which it starts from within its progress:
// for MPI_Comm_idup in another place of the communicator's order on each rank.
static bool is_of_open_mpi(const MccJob* job, const ompi_datatype_t* type) {
    return kMccNonblocking == job->form && 1 == job->plan.whole.count && MPI_INT == type &&
           (FI_MAX == job->plan.whole.op || FI_MIN == job->plan.whole.op);
}

MccRoute mcc_plan_allreduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                            MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = begin(job, (size_t)count, type, op);
    mcc_lay_reduction(&job->plan, FI_ALLREDUCE, input, result, 0);
    job->divisible = true;
    return 0 != bytes && !is_of_open_mpi(job, type) ? mcc_route(job, FI_ALLREDUCE, bytes) : kMccPrevious;
}

MccRoute mcc_plan_reduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                         int root, MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = begin(job, (size_t)count, type, op);
    mcc_lay_reduction(&job->plan, FI_REDUCE, input, result, root);
    job->divisible = true;
    return 0 != bytes ? mcc_route(job, FI_REDUCE, bytes) : kMccPrevious;
}

static MccRoute plan_deal(const void* input, void* result, const MccDeal* deal, ompi_datatype_t* type,
                          MPI_Op op, MccJob* job) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    if (0 == deal->total) return kMccOver;
    const size_t bytes = begin(job, (size_t)deal->total, type, op);
    if (0 == bytes || bytes > c->segment) return kMccPrevious;
    const bool whole = !deal->even || !mcc_group_has(job->module, FI_REDUCE_SCATTER);
    if (whole && bytes > c->reduce_scatter_small) return kMccPrevious;
    const MccRoute route = mcc_route(job, whole ? FI_ALLREDUCE : FI_REDUCE_SCATTER, bytes);
    if (kMccHere != route) return route;
    return mcc_planned(job, mcc_lay_deal(&job->plan, deal, input, result, job->width, whole));
}

MccRoute mcc_plan_reduce_scatter(const void* input, void* result, const int* counts, ompi_datatype_t* type,
                                 MPI_Op op, MccJob* job) {
    MccDeal deal;
    if (!mcc_deal_counts(&job->plan, (MccList){.at = counts}, &deal)) return kMccPrevious;
    return plan_deal(input, result, &deal, type, op, job);
}

MccRoute mcc_plan_reduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type,
                                       MPI_Op op, MccJob* job) {
    MccDeal deal;
    if (!mcc_deal_alike(&job->plan, count, &deal)) return kMccPrevious;
    return plan_deal(input, result, &deal, type, op, job);
}
