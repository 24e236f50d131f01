// MPI_Allreduce, Reduce, Reduce_scatter and Reduce_scatter_block as jobs.
//
// Who serves a call is decided on datatype, operator and counts, which MPI wants to be equal on all ranks.
// Long vectors of the first two are cut into segments of whole elements. libfabric's reduce_scatter deals the
// vector as evenly as it can; other counts become an allreduce while the vector is short, and are left to
// others when it is not.

#include "coll_mcastcoll_job.h"
#include "core/types.h"
#include "ompi/constants.h"

static size_t width_of(MPI_Datatype type) {
    size_t width = 0;
    ompi_datatype_type_size(type, &width);
    return width;
}

// Fills in datatype, operator, count and width. The bytes of the vector, or 0: left to others.
static size_t begin(MccJob* job, size_t count, ompi_datatype_t* type, MPI_Op op) {
    if (!mcc_reduction(type, op, width_of, &job->whole.datatype, &job->whole.op, &job->width)) return 0;
    job->whole.count = count;
    const size_t most = mca_coll_mcastcoll_component.max_message;
    return count <= most / job->width ? count * job->width : 0;
}

// Open MPI finds the number of a new communicator with such ones, which it starts from within its progress:
// for MPI_Comm_idup in another place of the communicator's order on each rank.
static bool is_of_open_mpi(const MccJob* job, const ompi_datatype_t* type) {
    return kMccNonblocking == job->form && 1 == job->whole.count && MPI_INT == type &&
           (FI_MAX == job->whole.op || FI_MIN == job->whole.op);
}

MccRoute mcc_plan_allreduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                            MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = begin(job, (size_t)count, type, op);
    job->whole.collective = FI_ALLREDUCE;
    job->whole.input = MPI_IN_PLACE == input ? result : input;
    job->whole.buffer = result;
    job->divisible = true;
    return 0 != bytes && !is_of_open_mpi(job, type) ? mcc_route(job, FI_ALLREDUCE, bytes) : kMccPrevious;
}

MccRoute mcc_plan_reduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                         int root, MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = begin(job, (size_t)count, type, op);
    job->whole.collective = FI_REDUCE;
    job->whole.input = MPI_IN_PLACE == input ? result : input;
    job->whole.buffer = job->self == (size_t)root ? result : NULL;
    job->whole.root = (uint32_t)root;
    job->divisible = true;
    return 0 != bytes ? mcc_route(job, FI_REDUCE, bytes) : kMccPrevious;
}

// The slice that libfabric's deal gives to a member, in elements (reduce/slices.h).
static size_t slice_of(size_t member, size_t members, size_t elements) {
    return elements / members + (member < elements % members ? 1 : 0);
}

typedef struct {
    size_t total, before, own;  // elements
    bool even;                  // the counts are those of libfabric's deal
} Deal;

// The result is one's own part. In place the input is the whole result buffer, and the result may not
// overlap it.
static MccRoute plan_deal(const void* input, void* result, const Deal* deal, ompi_datatype_t* type, MPI_Op op,
                          MccJob* job) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    if (0 == deal->total) return kMccOver;
    const size_t bytes = begin(job, deal->total, type, op);
    if (0 == bytes || bytes > c->segment) return kMccPrevious;
    const bool has = mcc_group_has(job->module, FI_REDUCE_SCATTER);
    const bool whole = !deal->even || !has;
    if (whole && bytes > c->reduce_scatter_small) return kMccPrevious;
    const MccRoute route = mcc_route(job, whole ? FI_ALLREDUCE : FI_REDUCE_SCATTER, bytes);
    if (kMccHere != route) return route;
    const bool in_place = MPI_IN_PLACE == input;
    job->whole.collective = whole ? FI_ALLREDUCE : FI_REDUCE_SCATTER;
    job->whole.input = in_place ? result : input;
    job->whole.buffer = result;
    if (!whole && !in_place) return kMccHere;
    uint8_t* memory = mcc_job_memory(job, (whole ? deal->total : deal->own + 1) * job->width);
    if (NULL == memory) return mcc_give_up(job, FI_ENOMEM);
    job->whole.buffer = memory;
    if (0 == deal->own) return kMccHere;
    job->afterwards = kMccUnpackOwn;
    job->from = memory + (whole ? deal->before * job->width : 0);
    job->bytes = deal->own * job->width;
    job->to = (MccLayout){.base = result, .count = (int)deal->own, .type = type};
    return kMccHere;
}

MccRoute mcc_plan_reduce_scatter(const void* input, void* result, const int* counts, ompi_datatype_t* type,
                                 MPI_Op op, MccJob* job) {
    Deal deal = {.even = true};
    for (size_t i = 0; i < job->members; ++i) deal.total += (size_t)counts[i];
    for (size_t i = 0; i < job->members; ++i) {
        if (i < job->self) deal.before += (size_t)counts[i];
        deal.even = deal.even && (size_t)counts[i] == slice_of(i, job->members, deal.total);
    }
    deal.own = (size_t)counts[job->self];
    return plan_deal(input, result, &deal, type, op, job);
}

MccRoute mcc_plan_reduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type,
                                       MPI_Op op, MccJob* job) {
    const Deal deal = {.total = (size_t)count * job->members,
                       .before = (size_t)count * job->self,
                       .own = (size_t)count,
                       .even = true};
    return plan_deal(input, result, &deal, type, op, job);
}
