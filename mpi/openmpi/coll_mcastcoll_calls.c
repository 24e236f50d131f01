// What MPI calls: each collective's blocking and non-blocking form, from one pattern.
//
// The call is planned as a job. Where the plan says so, or the group turns out not to have the collective,
// the previous module gets the call as it came.

#include "coll_mcastcoll_job.h"
#include "coll_mcastcoll_select.h"

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
// `parameters` and `arguments` are lists in parentheses that end with a comma, unless they are empty.
#define MCC_CALLS(enumerator, name, parameters, arguments)                                                 \
    static int mcc_##name(MCC_LIST parameters ompi_communicator_t* comm, mca_coll_base_module_t* module) { \
        MccJob job;                                                                                        \
        begin(&job, comm, module, kMccBlocking, enumerator);                                               \
        if (!mcc_run_job(&job, mcc_plan_##name(MCC_LIST arguments & job))) {                               \
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
        if (mcc_start_job(&job, mcc_plan_##name(MCC_LIST arguments & job), request)) return job.rc;        \
        const MccPrevious* previous = &job.module->previous[kMccNonblocking][enumerator];                  \
        return ((mca_coll_base_module_i##name##_fn_t)previous->function)(MCC_LIST arguments comm, request, \
                                                                         previous->module);                \
    }

// clang-format off
MCC_CALLS(kMccBarrier, barrier, (), ())
MCC_CALLS(kMccBcast, bcast, (void* buffer, int count, ompi_datatype_t* type, int root,),
          (buffer, count, type, root,))
MCC_CALLS(kMccAllreduce, allreduce, (const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,),
          (input, result, count, type, op,))
MCC_CALLS(kMccReduce, reduce,
          (const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op, int root,),
          (input, result, count, type, op, root,))
MCC_CALLS(kMccAllgather, allgather,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, int got,
           ompi_datatype_t* result_type,),
          (input, sent, input_type, result, got, result_type,))
MCC_CALLS(kMccAllgatherv, allgatherv,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, const int* counts,
           const int* places, ompi_datatype_t* result_type,),
          (input, sent, input_type, result, counts, places, result_type,))
MCC_CALLS(kMccGather, gather,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, int got,
           ompi_datatype_t* result_type, int root,),
          (input, sent, input_type, result, got, result_type, root,))
MCC_CALLS(kMccScatter, scatter,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, int got,
           ompi_datatype_t* result_type, int root,),
          (input, sent, input_type, result, got, result_type, root,))
MCC_CALLS(kMccAlltoall, alltoall,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, int got,
           ompi_datatype_t* result_type,),
          (input, sent, input_type, result, got, result_type,))
MCC_CALLS(kMccReduceScatter, reduce_scatter,
          (const void* input, void* result, const int* counts, ompi_datatype_t* type, MPI_Op op,),
          (input, result, counts, type, op,))
MCC_CALLS(kMccReduceScatterBlock, reduce_scatter_block,
          (const void* input, void* result, int count, ompi_datatype_t* type, MPI_Op op,),
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
