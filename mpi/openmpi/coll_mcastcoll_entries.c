// The entry functions: the blocking and the non-blocking form of each collective, generated from one macro. A
// call becomes an MccCall. If the decision is against the group, or the group turns out not to have the
// collective, the previous module gets the call unchanged.
//
// Broadcasts are divided into segments by packed bytes, and vectors into segments of whole elements.
// Collectives on blocks are not divided: blocks above the segment (coll_mcastcoll_experiment), or above 1 GiB
// for all members together, are left to the previous module.

#include "coll_mcastcoll.h"

// Returns whether this may be a call by which Open MPI itself finds the number of a new communicator. Open
// MPI starts such calls from within its progress, for MPI_Comm_idup at a different place in the
// communicator's call order on each rank, so the group cannot serve them. For an inter-communicator these
// calls are a reduction and a broadcast of one int on the local communicator of each side. A program's own
// call of this size may use a different datatype on each rank, so the decision uses only the size and the
// operator.
static bool is_of_open_mpi(const MccCall* call, const MccArguments* args, size_t bytes) {
    if (kMccNonblocking != call->form) return false;
    if (kMccBcast == args->collective) return sizeof(int) == bytes;
    return (kMccAllreduce == args->collective || kMccReduce == args->collective) && sizeof(int) == bytes &&
           (MPI_MAX == args->op || MPI_MIN == args->op);
}

// Chooses the provider's operation. libfabric's reduce_scatter distributes the vector as evenly as possible.
// Other counts use an allreduce while the vector is short, and the previous module otherwise.
static enum fi_collective_op choose(const MccCall* call) {
    const enum fi_collective_op own = mcc_collective_ops[call->collective];
    if (FI_REDUCE_SCATTER != own || (call->prepared.distribution.even && mcc_group_has(call->module, own)))
        return own;
    return FI_ALLREDUCE;
}

// Returns whether the parameters leave a message, vector or block of `bytes` to the previous module.
static bool is_left(const MccCall* call, enum fi_collective_op chosen, size_t bytes) {
    enum { kMaxTogether = 1 << 30 };
    const MccComponent* c = &mcc_component;
    const size_t together = c->max_message < kMaxTogether ? c->max_message : kMaxTogether;
    switch (call->collective) {
        case kMccBarrier:
            return false;
        case kMccBcast:
            return bytes < c->bcast_min_message || bytes > c->max_message;
        case kMccAllreduce:
        case kMccReduce:
            return bytes > c->max_message;
        case kMccReduceScatter:
        case kMccReduceScatterBlock:
            return bytes > c->max_message || bytes > c->segment ||
                   (FI_ALLREDUCE == chosen && bytes > c->reduce_scatter_small);
        default:
            return bytes > c->segment || bytes > together / call->prepared.members;
    }
}

static MccRoute prepare(MccCall* call, const MccArguments* args) {
    if (mcc_has_failed(call->module)) {
        call->rc = MPI_ERR_OTHER;
        return kMccOver;
    }
    if (kMccFresh == call->module->state && kMccBlocking == call->form)
        mcc_note_window(call->module, call->comm);
    if (!mcc_is_enabled(args->collective, call->form)) return kMccPrevious;
    const int64_t measured = mcc_call_bytes(&call->prepared, args);
    const size_t bytes = (size_t)measured;
    if (0 == measured && kMccBarrier != args->collective)
        return kMccOver;  // the result is the same on every rank, since signatures match
    const enum fi_collective_op chosen = choose(call);
    if (measured < 0 || is_left(call, chosen, bytes) || is_of_open_mpi(call, args, bytes))
        return kMccPrevious;
    call->bytes = bytes;
    call->divisible =
        kMccBcast == args->collective || kMccAllreduce == args->collective || kMccReduce == args->collective;
    const MccRoute route = mcc_route(call, chosen, bytes);
    if (kMccHere != route) return route;
    call->streamed = kMccBcast == args->collective && kMccBlocking == call->form &&
                     bytes > mcc_component.segment && NULL == mcc_contiguous(&args->out);
    if (call->streamed) {
        call->prepared.whole.collective = FI_BROADCAST;
        call->prepared.whole.count = bytes;
        call->prepared.whole.root = (uint32_t)args->root;
        call->prepared.to = args->out;
        call->longest = mcc_longest_part(call);
        return kMccHere;
    }
    const int error = mcc_prepare_call(&call->prepared, args, chosen,
                                       kMccBlocking == call->form ? &call->module->bounce : &call->memory);
    call->longest = mcc_longest_part(call);
    if (0 == error) return kMccHere;
    // The preparation failed on this member after every member has decided for the group.
    mcc_bounce_trim(&call->memory, 0);
    call->rc = mcc_fail(call->module->group, call, error);
    return kMccOver;
}

// Initialises a call. A barrier on one host takes 0.1 us, so only the fields that every call reads are set.
static void begin(MccCall* call, ompi_communicator_t* comm, mca_coll_base_module_t* module, MccForm form,
                  MccCollective collective) {
    call->module = (MccModule*)module;
    call->comm = comm;
    call->form = form;
    call->collective = collective;
    call->rc = 0;
    call->bytes = 0;
    mcc_begin_prepared_call(&call->prepared, (size_t)ompi_comm_size(comm), (size_t)ompi_comm_rank(comm));
    call->divisible = call->streamed = false;
    call->memory = (MccBounce){0};
    call->vectors = NULL;
    call->trial = NULL;
}

#define MCC_LIST(...) __VA_ARGS__
// `parameters`, `arguments` and the initialisers of MccArguments are lists in parentheses. The first two end
// with a comma unless they are empty.
#define MCC_CALLS(enumerator, name, parameters, arguments, ...)                                             \
    static int mcc_##name(MCC_LIST parameters ompi_communicator_t* comm, mca_coll_base_module_t* module) {  \
        MccCall call;                                                                                       \
        begin(&call, comm, module, kMccBlocking, enumerator);                                               \
        if (!mcc_run_call(&call, prepare(&call, &(MccArguments){.collective = enumerator, __VA_ARGS__}))) { \
            MccSavedModules saved;                                                                          \
            const MccPrevious previous = mcc_install_previous(call.module, comm, enumerator, &saved);       \
            call.rc = ((mca_coll_base_module_##name##_fn_t)previous.function)(MCC_LIST arguments comm,      \
                                                                              previous.module);             \
            mcc_restore_modules(call.module, comm, &saved);                                                 \
            if (OMPI_SUCCESS == call.rc && mcc_has_failed(call.module)) call.rc = MPI_ERR_OTHER;            \
        }                                                                                                   \
        if (NULL != call.trial) mcc_measured(&call);                                                        \
        return call.rc;                                                                                     \
    }                                                                                                       \
    static int mcc_i##name(MCC_LIST parameters ompi_communicator_t* comm, ompi_request_t** request,         \
                           mca_coll_base_module_t* module) {                                                \
        MccCall call;                                                                                       \
        begin(&call, comm, module, kMccNonblocking, enumerator);                                            \
        if (mcc_start_call(&call, prepare(&call, &(MccArguments){.collective = enumerator, __VA_ARGS__}),   \
                           request))                                                                        \
            return call.rc;                                                                                 \
        const MccPrevious* previous = &call.module->previous[kMccNonblocking][enumerator];                  \
        return ((mca_coll_base_module_i##name##_fn_t)previous->function)(MCC_LIST arguments comm, request,  \
                                                                         previous->module);                 \
    }

#define MCC_DATA(at, number, datatype) \
    { .base = at, .count = number, .type = datatype }
#define MCC_IN .in = MCC_DATA(input, sent, input_type)
#define MCC_OUT .out = MCC_DATA(result, got, result_type)
#define MCC_VECTOR(number) .in.base = input, .out = MCC_DATA(result, number, type), .op = op
// clang-format off
#define MCC_BLOCKS \
    const void *input, int sent, ompi_datatype_t *input_type, void *result, int got, ompi_datatype_t *result_type
#define MCC_ELEMENTS const void *input, void *result, int count, ompi_datatype_t *type, MPI_Op op
MCC_CALLS(kMccBarrier, barrier, (), ())
MCC_CALLS(kMccBcast, bcast, (void* buffer, int count, ompi_datatype_t* type, int root,),
          (buffer, count, type, root,), .out = MCC_DATA(buffer, count, type), .root = root)
MCC_CALLS(kMccAllreduce, allreduce, (MCC_ELEMENTS,), (input, result, count, type, op,), MCC_VECTOR(count))
MCC_CALLS(kMccReduce, reduce, (MCC_ELEMENTS, int root,), (input, result, count, type, op, root,),
          MCC_VECTOR(count), .root = root)
MCC_CALLS(kMccAllgather, allgather, (MCC_BLOCKS,), (input, sent, input_type, result, got, result_type,),
          MCC_IN, MCC_OUT)
MCC_CALLS(kMccAllgatherv, allgatherv,
          (const void* input, int sent, ompi_datatype_t* input_type, void* result, const int* counts,
           const int* places, ompi_datatype_t* result_type,),
          (input, sent, input_type, result, counts, places, result_type,),
          MCC_IN, .out = MCC_DATA(result, 0, result_type), .counts.at = counts, .places.at = places)
MCC_CALLS(kMccGather, gather, (MCC_BLOCKS, int root,), (input, sent, input_type, result, got, result_type, root,),
          MCC_IN, MCC_OUT, .root = root)
MCC_CALLS(kMccScatter, scatter, (MCC_BLOCKS, int root,), (input, sent, input_type, result, got, result_type, root,),
          MCC_IN, MCC_OUT, .root = root)
MCC_CALLS(kMccAlltoall, alltoall, (MCC_BLOCKS,), (input, sent, input_type, result, got, result_type,),
          MCC_IN, MCC_OUT)
MCC_CALLS(kMccReduceScatter, reduce_scatter,
          (const void* input, void* result, const int* counts, ompi_datatype_t* type, MPI_Op op,),
          (input, result, counts, type, op,), MCC_VECTOR(0), .counts.at = counts)
MCC_CALLS(kMccReduceScatterBlock, reduce_scatter_block, (MCC_ELEMENTS,), (input, result, count, type, op,),
          MCC_VECTOR(count))
// clang-format on

// Runs a small barrier, broadcast or allreduce without an MccCall: on one host, the operation takes less time
// than filling an MccCall. A call in one segment with contiguous host memory, on a communicator that the
// group serves, goes to the provider directly. False: the call needs an MccCall, or no member has begun the
// operation. Then the normal entry function decides, and calls the previous module if necessary.
static bool at_once(ompi_communicator_t* comm, mca_coll_base_module_t* module, MccCollective collective,
                    const struct fi_mcastcoll_request* request, size_t bytes, int* rc) {
    const MccComponent* c = &mcc_component;
    const MccModule* m = (MccModule*)module;
    if (kMccServing != m->state || m->group->failed || bytes > c->longest || bytes > c->max_message ||
        !mcc_group_has(m, request->collective) ||
        kMccHere != mcc_selected(m, kMccBlocking, collective, bytes))
        return false;
    const int error = mcc_run(m->group, request);
    *rc = OMPI_SUCCESS;
    if (0 == error) return true;
    if (FI_ENOSYS == error) return false;
    MccCall call;
    begin(&call, comm, module, kMccBlocking, collective);
    call.prepared.whole = *request;
    call.bytes = bytes;
    *rc = mcc_fail(m->group, &call, error);
    return true;
}

static int mcc_barrier_at_once(ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    static const struct fi_mcastcoll_request kRequest = {
        .size = sizeof(kRequest), .collective = FI_BARRIER, .datatype = FI_VOID, .op = FI_NOOP};
    int rc;
    return at_once(comm, module, kMccBarrier, &kRequest, 0, &rc) ? rc : mcc_barrier(comm, module);
}

static int mcc_bcast_at_once(void* buffer, int count, ompi_datatype_t* type, int root,
                             ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    const size_t bytes = mcc_width(type) * (size_t)count;
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    const uint8_t* contiguous = 0 != bytes ? mcc_contiguous(&layout) : NULL;
    const struct fi_mcastcoll_request request = {.size = sizeof(request),
                                                 .collective = FI_BROADCAST,
                                                 .datatype = FI_UINT8,
                                                 .op = FI_NOOP,
                                                 .root = (uint32_t)root,
                                                 .buffer = (void*)(uintptr_t)contiguous,
                                                 .count = bytes};
    int rc;
    if (NULL != contiguous && bytes >= mcc_component.bcast_min_message &&
        at_once(comm, module, kMccBcast, &request, bytes, &rc))
        return rc;
    return mcc_bcast(buffer, count, type, root, comm, module);
}

static int mcc_allreduce_at_once(MCC_ELEMENTS, ompi_communicator_t* comm, mca_coll_base_module_t* module) {
    enum { kSmall = 4096 };
    struct fi_mcastcoll_request request = {.size = sizeof(request),
                                           .collective = FI_ALLREDUCE,
                                           .input = MPI_IN_PLACE == input ? result : input,
                                           .buffer = result,
                                           .count = (size_t)count};
    size_t width = 0;
    int rc;
    if (count > 0 && count <= kSmall && mcc_reduction(type, op, &request.datatype, &request.op, &width) &&
        request.count * width <= kSmall && !mcc_is_device(request.input) && !mcc_is_device(result) &&
        mcc_provider_has(&mcc_component.fabric, FI_ALLREDUCE, request.datatype, request.op) &&
        at_once(comm, module, kMccAllreduce, &request, request.count * width, &rc))
        return rc;
    return mcc_allreduce(input, result, count, type, op, comm, module);
}

#define MCC_ENTRY(enumerator, name, collective) \
    [enumerator] = {(void (*)(void))mcc_##name, (void (*)(void))mcc_i##name},
static void (*const kEntries[kMccCollectives][kMccForms])(void) = {MCC_COLLECTIVES(MCC_ENTRY)};

void (*mcc_entry(MccCollective collective, MccForm form))(void) {
    if (kMccBlocking != form || !mcc_is_enabled(collective, form)) return kEntries[collective][form];
    if (kMccBarrier == collective) return (void (*)(void))mcc_barrier_at_once;
    if (kMccBcast == collective) return (void (*)(void))mcc_bcast_at_once;
    if (kMccAllreduce == collective) return (void (*)(void))mcc_allreduce_at_once;
    return kEntries[collective][form];
}
