// What MPI calls: each collective's blocking and non-blocking form, from one pattern.
//
// The call is planned as a job. Where the plan says so, or the group turns out not to have the collective,
// the previous module gets the call as it came.
//
// Who serves a call is decided on what MPI makes equal on all ranks: the packed size of a message or of a
// block (count and datatype may differ as long as the signature is the same), so that a rank with a derived
// datatype is not alone with that; for reductions datatype, operator and counts. Broadcasts are cut into
// segments by bytes of the packed form, and vectors into segments of whole elements. The operations on blocks
// are not cut: blocks above coll_mcastcoll_segment, and more than 1 GiB of them together, are left to others.

#include <stdlib.h>

#include "coll_mcastcoll.h"
#include "ompi/constants.h"

static size_t bytes_of(const MccLayout* layout) {
    return mcc_width(layout->type) * (size_t)layout->count;
}

// Here, unless the plan came to an end in a local error, after all ranks had decided to be served here.
static MccRoute planned(MccJob* job, int error) {
    if (0 == error) return kMccHere;
    free(job->memory);
    job->memory = NULL;
    job->rc = mcc_fail(job->module->group, job, error);
    return kMccOver;
}

static MccRoute plan_barrier(MccJob* job) {
    job->plan.whole.collective = FI_BARRIER;
    job->plan.whole.datatype = FI_VOID;
    return mcc_route(job, FI_BARRIER, 0);
}

static MccRoute plan_bcast(MccLayout layout, int root, MccJob* job) {
    MccComponent* c = &mca_coll_mcastcoll_component;
    const size_t bytes = bytes_of(&layout);
    if (0 == bytes) return kMccOver;  // on every rank, by the signature
    if (bytes < c->bcast_min_message || bytes > c->max_message) return kMccPrevious;
    job->divisible = true;
    const MccRoute route = mcc_route(job, FI_BROADCAST, bytes);
    if (kMccHere != route) return route;
    job->streamed =
        kMccBlocking == job->form && bytes > c->segment && NULL == mcc_open_mpi.contiguous(&layout);
    if (!job->streamed) return planned(job, mcc_lay_bcast(&job->plan, &layout, bytes, root));
    job->plan.whole.collective = FI_BROADCAST;
    job->plan.whole.count = bytes;
    job->plan.whole.root = (uint32_t)root;
    job->plan.to = layout;
    return kMccHere;
}

enum { kMostTogether = 1 << 30 };

// `block`: what this member knows of the size of one.
static MccRoute route(MccJob* job, enum fi_collective_op needed, size_t block) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    const size_t most = c->max_message < kMostTogether ? c->max_message : kMostTogether;
    job->plan.block = block;
    if (0 == block) return kMccOver;  // on every rank, by the signature
    if (block > c->segment || block > most / job->plan.members) return kMccPrevious;
    return mcc_route(job, needed, block);
}

static MccRoute plan_allgather(MccLayout in, MccLayout out, MccJob* job) {
    const MccRoute who = route(job, FI_ALLGATHER, bytes_of(&out));
    return kMccHere == who ? planned(job, mcc_lay_allgather(&job->plan, &in, &out)) : who;
}

static MccRoute plan_allgatherv(MccLayout in, MccLayout out, MccList counts, MccList places, MccJob* job) {
    size_t largest = 0;
    if (!mcc_measure_blocks(&job->plan, &out, counts, &largest)) return kMccPrevious;
    const MccRoute who = route(job, FI_ALLGATHER, largest);
    return kMccHere == who ? planned(job, mcc_lay_allgatherv(&job->plan, &in, &out, counts, places)) : who;
}

static MccRoute plan_gather(MccLayout in, MccLayout out, int root, MccJob* job) {
    const MccRoute who = route(job, FI_GATHER, bytes_of(job->plan.self == (size_t)root ? &out : &in));
    return kMccHere == who ? planned(job, mcc_lay_gather(&job->plan, &in, &out, root)) : who;
}

static MccRoute plan_scatter(MccLayout in, MccLayout out, int root, MccJob* job) {
    const MccRoute who = route(job, FI_SCATTER, bytes_of(job->plan.self == (size_t)root ? &in : &out));
    return kMccHere == who ? planned(job, mcc_lay_scatter(&job->plan, &in, &out, root)) : who;
}

static MccRoute plan_alltoall(MccLayout in, MccLayout out, MccJob* job) {
    const MccRoute who = route(job, FI_ALLTOALL, bytes_of(&out));
    return kMccHere == who ? planned(job, mcc_lay_alltoall(&job->plan, &in, &out)) : who;
}

// libfabric's reduce_scatter deals the vector as evenly as it can; other counts become an allreduce while the
// vector is short, and are left to others when it is not.

// Fills in datatype, operator, count and width. The bytes of the vector, or 0: left to others.
static size_t describe(MccJob* job, size_t count, ompi_datatype_t* type, MPI_Op op) {
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

static MccRoute plan_allreduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                               MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = describe(job, (size_t)count, type, op);
    mcc_lay_reduction(&job->plan, FI_ALLREDUCE, input, result, 0);
    job->divisible = true;
    return 0 != bytes && !is_of_open_mpi(job, type) ? mcc_route(job, FI_ALLREDUCE, bytes) : kMccPrevious;
}

static MccRoute plan_reduce(const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,
                            int root, MccJob* job) {
    if (0 == count) return kMccOver;
    const size_t bytes = describe(job, (size_t)count, type, op);
    mcc_lay_reduction(&job->plan, FI_REDUCE, input, result, root);
    job->divisible = true;
    return 0 != bytes ? mcc_route(job, FI_REDUCE, bytes) : kMccPrevious;
}

static MccRoute plan_any_deal(const void* input, void* result, const MccDeal* deal, ompi_datatype_t* type,
                              MPI_Op op, MccJob* job) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    if (0 == deal->total) return kMccOver;
    const size_t bytes = describe(job, (size_t)deal->total, type, op);
    if (0 == bytes || bytes > c->segment) return kMccPrevious;
    const bool whole = !deal->even || !mcc_group_has(job->module, FI_REDUCE_SCATTER);
    if (whole && bytes > c->reduce_scatter_small) return kMccPrevious;
    const MccRoute route = mcc_route(job, whole ? FI_ALLREDUCE : FI_REDUCE_SCATTER, bytes);
    if (kMccHere != route) return route;
    return planned(job, mcc_lay_deal(&job->plan, deal, input, result, job->width, whole));
}

static MccRoute plan_reduce_scatter(const void* input, void* result, MccList counts, ompi_datatype_t* type,
                                    MPI_Op op, MccJob* job) {
    MccDeal deal;
    if (!mcc_deal_counts(&job->plan, counts, &deal)) return kMccPrevious;
    return plan_any_deal(input, result, &deal, type, op, job);
}

static MccRoute plan_reduce_scatter_block(const void* input, void* result, int count, ompi_datatype_t* type,
                                          MPI_Op op, MccJob* job) {
    MccDeal deal;
    if (!mcc_deal_alike(&job->plan, count, &deal)) return kMccPrevious;
    return plan_any_deal(input, result, &deal, type, op, job);
}

// A barrier inside a host takes a tenth of a microsecond, so only what is always looked at is written.
static void begin(MccJob* job, ompi_communicator_t* comm, mca_coll_base_module_t* module, MccForm form,
                  MccCollective collective) {
    job->module = (MccModule*)module;
    job->comm = comm;
    job->form = form;
    job->collective = collective;
    job->rc = 0;
    mcc_begin_plan(&job->plan, &mcc_open_mpi, (size_t)ompi_comm_size(comm), (size_t)ompi_comm_rank(comm));
    job->width = 1;
    job->divisible = job->streamed = false;
    job->memory = NULL;
    job->vectors = NULL;
    job->trial = NULL;
}

#define MCC_LIST(...) __VA_ARGS__
// `parameters`, `arguments` and what the plan takes of them are lists in parentheses that end with a comma,
// unless they are empty.
#define MCC_CALLS(enumerator, name, parameters, arguments, of_plan)                                        \
    static int mcc_##name(MCC_LIST parameters ompi_communicator_t* comm, mca_coll_base_module_t* module) { \
        MccJob job;                                                                                        \
        begin(&job, comm, module, kMccBlocking, enumerator);                                               \
        if (!mcc_run_job(&job, plan_##name(MCC_LIST of_plan & job))) {                                     \
            const MccPrevious* previous = &job.module->previous[kMccBlocking][enumerator];                 \
            job.rc = ((mca_coll_base_module_##name##_fn_t)previous->function)(MCC_LIST arguments comm,     \
                                                                              previous->module);           \
        }                                                                                                  \
        if (NULL != job.trial) mcc_measured(&job);                                                         \
        return job.rc;                                                                                     \
    }                                                                                                      \
    static int mcc_i##name(MCC_LIST parameters ompi_communicator_t* comm, ompi_request_t** request,        \
                           mca_coll_base_module_t* module) {                                               \
        MccJob job;                                                                                        \
        begin(&job, comm, module, kMccNonblocking, enumerator);                                            \
        if (mcc_start_job(&job, plan_##name(MCC_LIST of_plan & job), request)) return job.rc;              \
        const MccPrevious* previous = &job.module->previous[kMccNonblocking][enumerator];                  \
        return ((mca_coll_base_module_i##name##_fn_t)previous->function)(MCC_LIST arguments comm, request, \
                                                                         previous->module);                \
    }

#define MCC_LAYOUT(at, number, datatype) ((MccLayout){.base = at, .count = number, .type = datatype})
#define MCC_EACH(items) ((MccList){.at = items})
#define MCC_IN MCC_LAYOUT(input, sent, input_type)
#define MCC_OUT MCC_LAYOUT(result, got, result_type)
// clang-format off
#define MCC_BLOCKS \
    const void *input, int sent, ompi_datatype_t *input_type, void *result, int got, ompi_datatype_t *result_type
#define MCC_ELEMENTS const void *input, void *result, int count, ompi_datatype_t *type, MPI_Op op
MCC_CALLS(kMccBarrier, barrier, (), (), ())
MCC_CALLS(kMccBcast, bcast, (void* buffer, int count, ompi_datatype_t* type, int root,),
          (buffer, count, type, root,), (MCC_LAYOUT(buffer, count, type), root,))
MCC_CALLS(kMccAllreduce, allreduce, (MCC_ELEMENTS,), (input, result, count, type, op,),
          (input, result, count, type, op,))
MCC_CALLS(kMccReduce, reduce, (MCC_ELEMENTS, int root,), (input, result, count, type, op, root,),
          (input, result, count, type, op, root,))
MCC_CALLS(kMccAllgather, allgather, (MCC_BLOCKS,), (input, sent, input_type, result, got, result_type,),
          (MCC_IN, MCC_OUT,))
MCC_CALLS(kMccAllgatherv, allgatherv,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, const int* counts,
           const int* places, ompi_datatype_t* result_type,),
          (input, sent, input_type, result, counts, places, result_type,),
          (MCC_IN, MCC_LAYOUT(result, 0, result_type), MCC_EACH(counts), MCC_EACH(places),))
MCC_CALLS(kMccGather, gather, (MCC_BLOCKS, int root,), (input, sent, input_type, result, got, result_type, root,),
          (MCC_IN, MCC_OUT, root,))
MCC_CALLS(kMccScatter, scatter, (MCC_BLOCKS, int root,), (input, sent, input_type, result, got, result_type, root,),
          (MCC_IN, MCC_OUT, root,))
MCC_CALLS(kMccAlltoall, alltoall, (MCC_BLOCKS,), (input, sent, input_type, result, got, result_type,),
          (MCC_IN, MCC_OUT,))
MCC_CALLS(kMccReduceScatter, reduce_scatter,
          (const void* input, void* result, const int* counts, ompi_datatype_t* type, MPI_Op op,),
          (input, result, counts, type, op,), (input, result, MCC_EACH(counts), type, op,))
MCC_CALLS(kMccReduceScatterBlock, reduce_scatter_block, (MCC_ELEMENTS,), (input, result, count, type, op,),
          (input, result, count, type, op,))
// clang-format on

// Inside a host a small barrier or broadcast takes less time than a job's bookkeeping. What needs none of
// that (a group that serves, memory that is contiguous, one segment) goes to the provider as it is.
static bool needs_no_job(const MccModule* m, MccCollective collective, enum fi_collective_op needed,
                         size_t bytes) {
    return kMccServing == m->state && !m->group->failed && mcc_group_has(m, needed) &&
           kMccHere == mcc_selected(m, kMccBlocking, collective, bytes);
}

static int fail_at_once(ompi_communicator_t* comm, mca_coll_base_module_t* module, MccCollective collective,
                        const struct fi_mcastcoll_request* request, int error) {
    MccJob job;
    begin(&job, comm, module, kMccBlocking, collective);
    job.plan.whole = *request;
    return mcc_fail(job.module->group, &job, error);
}

static int mcc_barrier_at_once(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    static const struct fi_mcastcoll_request kRequest = {
        .size = sizeof(kRequest), .collective = FI_BARRIER, .datatype = FI_VOID, .op = FI_NOOP};
    MccModule* m = (MccModule*)module;
    if (!needs_no_job(m, kMccBarrier, FI_BARRIER, 0)) return mcc_barrier(comm, module);
    const int error = mcc_run(m->group, &kRequest);
    if (0 == error) return OMPI_SUCCESS;
    // Nobody has begun it: mcc_barrier() asks once more, and then the previous module.
    if (FI_ENOSYS == error) return mcc_barrier(comm, module);
    return fail_at_once(comm, module, kMccBarrier, &kRequest, error);
}

static int mcc_bcast_at_once(void* buffer, int count, ompi_datatype_t* type, int root,
                             ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    MccModule* m = (MccModule*)module;
    const size_t bytes = mcc_width(type) * (size_t)count;
    if (0 == bytes || bytes < c->bcast_min_message || bytes > c->longest || bytes > c->max_message ||
        !needs_no_job(m, kMccBcast, FI_BROADCAST, bytes))
        return mcc_bcast(buffer, count, type, root, comm, module);
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    struct fi_mcastcoll_request request = {.size = sizeof(request),
                                           .collective = FI_BROADCAST,
                                           .datatype = FI_UINT8,
                                           .op = FI_NOOP,
                                           .root = (uint32_t)root,
                                           .buffer = (void*)(uintptr_t)mcc_open_mpi.contiguous(&layout),
                                           .count = bytes};
    if (NULL == request.buffer) return mcc_bcast(buffer, count, type, root, comm, module);
    const int error = mcc_run(m->group, &request);
    if (0 == error) return OMPI_SUCCESS;
    if (FI_ENOSYS == error) return mcc_bcast(buffer, count, type, root, comm, module);
    return fail_at_once(comm, module, kMccBcast, &request, error);
}

#define MCC_ENTRY(enumerator, name, collective) \
    [enumerator] = {(void (*)(void))mcc_##name, (void (*)(void))mcc_i##name},
static void (*const kEntries[kMccCollectives][kMccForms])(void) = {MCC_COLLECTIVES(MCC_ENTRY)};

void (*mcc_entry(MccCollective collective, MccForm form))(void) {
    if (kMccBlocking == form && kMccBarrier == collective) return (void (*)(void))mcc_barrier_at_once;
    if (kMccBlocking == form && kMccBcast == collective) return (void (*)(void))mcc_bcast_at_once;
    return kEntries[collective][form];
}
