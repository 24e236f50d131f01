// The interposed MPI functions, and the path of an operation from the decision which side serves it to its
// end. The large-count calls of MPI 4 (MPI_..._c) may match ordinary calls on other members.
//
// No lock is held while an operation runs: two threads with two communicators must not wait for each other,
// since the threads of another rank may arrive in the opposite order. Only one thread at a time uses a group,
// since MPI requires the collectives of a communicator to be called in sequence.
//
// If a provider answers FI_ENOSYS, the provider does so on every member of the group and before any work has
// begun. From then on, PMPI serves this operation on this communicator. After any other failure the members
// may disagree about the work done, and every further collective of the communicator ends with an error.

#include "pmpi.h"

typedef struct {
    PmpiGroup* g;
    MccCollective operation;
    MccPreparedCall prepared;
} PmpiCall;

// Leaves the call to PMPI: counts the call, and returns false for serve().
static bool leave(const PmpiCall* c) {
    (void)atomic_fetch_add_explicit(&pmpi.left[c->operation], 1, memory_order_relaxed);
    return false;
}

// Returns 0 or a positive FI_E code.
static int operate(const PmpiCall* c) {
    PmpiGroup* g = c->g;
    ssize_t result;
    const bool entered = mcc_enter(&pmpi.thread);
    while (-FI_EAGAIN == (result = g->join.run(g->join.mc, &c->prepared.whole, pmpi_progress_mpi, g)))
        (void)pmpi_progress_mpi(g);
    mcc_leave(&pmpi.thread, entered);
    return 0 == result && !mcc_deliver(&c->prepared) ? FI_EOTHER : (int)-result;
}

// Runs the operation, unless `error` says that it could not be prepared. True: the call ends with *rc. False:
// no member has begun the operation, and PMPI serves it. In both cases this is the call's last use of the
// group: the bounce buffer may have been freed, and after a failure the group as well, since the program's
// error handler has been called.
static bool run(const PmpiCall* c, int error, int* rc) {
    PmpiGroup* g = c->g;
    const char* name = mcc_collective_names[c->operation];
    if (0 == error) error = kPmpiBroken == g->state ? FI_EOPBADSTATE : operate(c);
    mcc_bounce_trim(&g->bounce, kMccKeptBounce);
    if (FI_ENOSYS == error) {
        g->join.refused |= 1U << mcc_collective_ops[c->operation];
        if (0 == g->join.rank)
            pmpi_log(1, "the provider does not support %s for this group of %d members: it stays with MPI",
                     name, g->join.size);
    }
    if (FI_ENOSYS == error || FI_EOPNOTSUPP == error) return leave(c);
    *rc = MPI_SUCCESS;
    if (0 == error) {
        (void)atomic_fetch_add_explicit(&pmpi.served[c->operation], 1, memory_order_relaxed);
        return true;
    }
    pmpi_group_break(g);
    pmpi_log(0, "%s failed on rank %d of %d: %s", name, g->join.rank, g->join.size, fi_strerror(error));
    *rc = mcc_error_class(error);
    PMPI_Comm_call_errhandler(g->comm, *rc);
    return true;
}

// Returns whether the group has the operation and serves a message of this size. libfabric's reduce_scatter
// fixes the distribution of the result, so a call of MPI_Reduce_scatter is served only if its counts are this
// distribution.
static bool is_served(PmpiCall* c, const MccArguments* args) {
    const PmpiGroup* g = c->g;
    const PmpiSettings* s = &pmpi.settings;
    const enum fi_collective_op collective = mcc_collective_ops[args->collective];
    const struct fi_mcastcoll_request* whole = &c->prepared.whole;
    if (kPmpiLeft == g->state || 0 == (s->enabled >> args->collective & 1) ||
        !mcc_provider_has(&pmpi.provider, collective, FI_VOID, FI_NOOP) ||
        0 != (g->join.refused >> collective & 1) || args->root < 0 || args->root >= g->join.size)
        return false;
    mcc_begin_prepared_call(&c->prepared, (size_t)g->join.size, (size_t)g->join.rank);
    const int64_t message = mcc_call_bytes(&c->prepared, args);
    if (kMccBarrier == args->collective) return true;
    const uint64_t bytes = (uint64_t)message * (0 != c->prepared.block ? (uint64_t)g->join.size : 1);
    return message > 0 && bytes > 0 && bytes >= s->min_bytes && bytes <= s->max_bytes &&
           c->prepared.distribution.even &&
           mcc_provider_has(&pmpi.provider, collective, whole->datatype, whole->op);
}

// Serves the call with the provider. False: PMPI must serve the call or report the error. The group is formed
// first, whatever the arguments: see rule 2 in pmpi.h.
static bool serve(const MccArguments* args, MPI_Comm comm, int* rc) {
    PmpiCall c;
    c.operation = args->collective;
    c.g = MPI_COMM_NULL != comm && pmpi_open() ? pmpi_group_of(comm) : NULL;
    if (NULL == c.g) return false;
    if (!is_served(&c, args)) return leave(&c);
    return run(&c, mcc_prepare_call(&c.prepared, args, mcc_collective_ops[args->collective], &c.g->bounce),
               rc);
}

// The signatures are MPI's, with one count type (int, MPI_Count) and one displacement type (int, MPI_Aint).
// The initialisers of MccArguments, the parameters and the arguments are lists in parentheses.
#define PARTS(...) __VA_ARGS__
#define ENTRY(name, parameters, parts, arguments)                                           \
    __attribute__((visibility("default"))) int MPI_##name parameters {                      \
        int rc = MPI_SUCCESS;                                                               \
        return serve(&(MccArguments){PARTS parts}, comm, &rc) ? rc : PMPI_##name arguments; \
    }
// mcc_item() reads the MPI_Aint displacements of the large-count calls as MPI_Count.
_Static_assert(sizeof(MPI_Aint) == sizeof(int) || sizeof(MPI_Aint) == sizeof(MPI_Count), "mcc_item()");
#define LIST(items) \
    { items, sizeof(*(items)) != sizeof(int) }
#define DATA(at, number, datatype) \
    { .base = at, .count = number, .type = datatype }
#define IN .in = DATA(in, in_count, in_type)
#define OUT .out = DATA(out, out_count, out_type)
#define BLOCKS(Count) \
    const void *in, Count in_count, MPI_Datatype in_type, void *out, Count out_count, MPI_Datatype out_type

// clang-format off
#define ENTRIES(suffix, Count, Place) \
    ENTRY(Bcast##suffix, (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm), \
          (kMccBcast, .out = DATA(buffer, count, type), .root = root), (buffer, count, type, root, comm)) \
    ENTRY(Reduce##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm), \
          (kMccReduce, .in.base = in, .out = DATA(out, count, type), .op = op, .root = root), \
          (in, out, count, type, op, root, comm)) \
    ENTRY(Allreduce##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          (kMccAllreduce, .in.base = in, .out = DATA(out, count, type), .op = op), \
          (in, out, count, type, op, comm)) \
    ENTRY(Allgather##suffix, (BLOCKS(Count), MPI_Comm comm), (kMccAllgather, IN, OUT), \
          (in, in_count, in_type, out, out_count, out_type, comm)) \
    ENTRY(Alltoall##suffix, (BLOCKS(Count), MPI_Comm comm), (kMccAlltoall, IN, OUT), \
          (in, in_count, in_type, out, out_count, out_type, comm)) \
    ENTRY(Gather##suffix, (BLOCKS(Count), int root, MPI_Comm comm), (kMccGather, IN, OUT, .root = root), \
          (in, in_count, in_type, out, out_count, out_type, root, comm)) \
    ENTRY(Scatter##suffix, (BLOCKS(Count), int root, MPI_Comm comm), (kMccScatter, IN, OUT, .root = root), \
          (in, in_count, in_type, out, out_count, out_type, root, comm)) \
    ENTRY(Allgatherv##suffix, \
          (const void* in, Count in_count, MPI_Datatype in_type, void* out, const Count* counts, \
           const Place* places, MPI_Datatype out_type, MPI_Comm comm), \
          (kMccAllgatherv, IN, .out = DATA(out, 0, out_type), .counts = LIST(counts), .places = LIST(places)), \
          (in, in_count, in_type, out, counts, places, out_type, comm)) \
    ENTRY(Reduce_scatter##suffix, \
          (const void* in, void* out, const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          (kMccReduceScatter, .in.base = in, .out = DATA(out, 0, type), .counts = LIST(counts), .op = op), \
          (in, out, counts, type, op, comm)) \
    ENTRY(Reduce_scatter_block##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          (kMccReduceScatterBlock, .in.base = in, .out = DATA(out, count, type), .op = op), \
          (in, out, count, type, op, comm))

ENTRY(Barrier, (MPI_Comm comm), (.collective = kMccBarrier), (comm))
ENTRIES(, int, int)
#if MPI_VERSION >= 4
ENTRIES(_c, MPI_Count, MPI_Aint)
#endif
// clang-format on
