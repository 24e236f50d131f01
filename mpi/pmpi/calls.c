// What the program calls in place of MPI's own, and one operation from the decision who serves it to its end.
//
// The decision looks at what is the same on all members only: the packed size of a message, or of one block,
// whatever their datatypes; for reductions elements, operator and counts. MPI_..._c, the large-count calls of
// MPI 4, may meet the ordinary ones on other members and share everything with them.
//
// No lock is held while it runs: two threads with two communicators must not wait for each other, since
// another rank's threads may come in the other order. A group is used by one thread at a time, since MPI has
// a communicator's collectives called one after the other.
//
// A provider that answers FI_ENOSYS does so on all members of the group and before anything was begun; from
// then on PMPI serves that operation on this communicator. After any other failure the members may differ
// about what was done, and the communicator's collectives end with errors.

#include "pmpi.h"

// The call is left to PMPI.
static bool leave(const PmpiCall* c) {
    (void)atomic_fetch_add_explicit(&pmpi.left[c->operation], 1, memory_order_relaxed);
    return false;
}

// True if the communicator's group has the operation; otherwise the call is left. To be called first,
// whatever the arguments: see rule 2 in pmpi.h.
static bool begin(PmpiCall* c, MPI_Comm comm, MccCollective operation) {
    PmpiGroup* g = pmpi_group_of(comm);
    if (NULL == g) return false;
    const enum fi_collective_op collective = mcc_collective_ops[operation];
    c->g = g;
    c->operation = operation;
    if (kPmpiLeft == g->state || 0 == (pmpi.settings.enabled >> operation & 1) ||
        !mcc_provider_has(&pmpi.provider, collective, FI_VOID, FI_NOOP) || 0 != (g->refused >> operation & 1))
        return leave(c);
    mcc_begin_plan(&c->plan, &pmpi_face, (size_t)g->size, (size_t)g->rank);
    c->plan.whole.collective = collective;
    return true;
}

static bool in_range(uint64_t bytes) {
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

// Runs the operation and delivers what came in, unless `error` tells that it could not be planned. True: the
// call ends with *rc. False: it was not begun on any member, PMPI serves it. Either way this is the call's
// last use of the group: its bounce buffer may be gone, and after a failure the group itself, since the
// program's error handler has been called.
static bool run(PmpiCall* c, int error, int* rc) {
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
        return leave(c);
    }
    if (0 == result && !mcc_deliver(&c->plan)) result = -FI_EOTHER;
    if (0 != result) return fail(c, (int)-result, rc);
    mcc_bounce_trim(&g->bounce, kMccKeptBounce);
    (void)atomic_fetch_add_explicit(&pmpi.served[c->operation], 1, memory_order_relaxed);
    *rc = MPI_SUCCESS;
    return true;
}

static bool bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!begin(&c, comm, kMccBcast)) return false;
    const int64_t bytes = pmpi_bytes(count, type);
    if (bytes < 0 || root < 0 || root >= c.g->size || !in_range((uint64_t)bytes)) return leave(&c);
    const MccLayout layout = {.base = buffer, .count = count, .type = type};
    return run(&c, mcc_lay_bcast(&c.plan, &layout, (size_t)bytes, root), rc);
}

static bool barrier(MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!begin(&c, comm, kMccBarrier)) return false;
    c.plan.whole.datatype = FI_VOID;
    return run(&c, 0, rc);
}

// Whether a whole operation of such blocks is served; otherwise the call is left.
static bool take(PmpiCall* c, int64_t block) {
    c->plan.block = (size_t)block;
    return (block > 0 && in_range((uint64_t)block * (uint64_t)c->g->size)) || leave(c);
}

// `block`: of what this member has to say, only; what MPI does not look at may be anything.
static bool take_layout(PmpiCall* c, const MccLayout* block) {
    return take(c, pmpi_bytes(block->count, block->type));
}

static bool take_rooted(PmpiCall* c, int root, const MccLayout* of_root, const MccLayout* of_others) {
    if (root < 0 || root >= c->g->size) return leave(c);
    return take_layout(c, c->g->rank == root ? of_root : of_others);
}

static bool allgather(MccLayout in, MccLayout out, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return begin(&c, comm, kMccAllgather) && take_layout(&c, &out) &&
           run(&c, mcc_lay_allgather(&c.plan, &in, &out), rc);
}

static bool allgatherv(MccLayout in, void* buffer, MccList counts, MccList places, MPI_Datatype type,
                       MPI_Comm comm, int* rc) {
    PmpiCall c;
    if (!begin(&c, comm, kMccAllgatherv)) return false;
    const MccLayout out = {.base = buffer, .type = type};
    size_t largest = 0;
    if (NULL == counts.at || NULL == places.at || !mcc_measure_blocks(&c.plan, &out, counts, &largest))
        return leave(&c);
    return take(&c, (int64_t)largest) && run(&c, mcc_lay_allgatherv(&c.plan, &in, &out, counts, places), rc);
}

static bool gather(MccLayout in, MccLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return begin(&c, comm, kMccGather) && take_rooted(&c, root, &out, &in) &&
           run(&c, mcc_lay_gather(&c.plan, &in, &out, root), rc);
}

static bool scatter(MccLayout in, MccLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return begin(&c, comm, kMccScatter) && take_rooted(&c, root, &in, &out) &&
           run(&c, mcc_lay_scatter(&c.plan, &in, &out, root), rc);
}

static bool alltoall(MccLayout in, MccLayout out, MPI_Comm comm, int* rc) {
    PmpiCall c;
    return begin(&c, comm, kMccAlltoall) && take_layout(&c, &out) &&
           run(&c, mcc_lay_alltoall(&c.plan, &in, &out), rc);
}

// libfabric deals the result of a reduce_scatter out itself (as many elements for everybody, one more for
// each of the first few); MPI's is served where its counts say the same.

// Fills in what describes the elements; otherwise the call is left.
static bool take_elements(PmpiCall* c, MPI_Count count, MPI_Datatype type, MPI_Op op, size_t* width) {
    struct fi_mcastcoll_request* whole = &c->plan.whole;
    whole->count = (size_t)count;
    return (count >= 0 && mcc_reduction(type, op, pmpi_face.width, &whole->datatype, &whole->op, width) &&
            mcc_provider_has(&pmpi.provider, mcc_collective_ops[c->operation], whole->datatype, whole->op) &&
            (uint64_t)count <= UINT64_MAX / *width && in_range((uint64_t)count * *width)) ||
           leave(c);
}

static bool allreduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                      int* rc) {
    PmpiCall c;
    size_t width = 0;
    if (!begin(&c, comm, kMccAllreduce) || !take_elements(&c, count, type, op, &width)) return false;
    mcc_lay_reduction(&c.plan, FI_ALLREDUCE, in, out, 0);
    return run(&c, 0, rc);
}

static bool reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                   MPI_Comm comm, int* rc) {
    PmpiCall c;
    size_t width = 0;
    if (!begin(&c, comm, kMccReduce)) return false;
    if (root < 0 || root >= c.g->size) return leave(&c);
    if (!take_elements(&c, count, type, op, &width)) return false;
    mcc_lay_reduction(&c.plan, FI_REDUCE, in, out, root);
    return run(&c, 0, rc);
}

static bool deal_out(PmpiCall* c, const MccDeal* deal, const void* in, void* out, MPI_Datatype type,
                     MPI_Op op, int* rc) {
    size_t width = 0;
    return take_elements(c, deal->total, type, op, &width) &&
           run(c, mcc_lay_deal(&c->plan, deal, in, out, width, false), rc);
}

static bool reduce_scatter(const void* in, void* out, MccList counts, MPI_Datatype type, MPI_Op op,
                           MPI_Comm comm, int* rc) {
    PmpiCall c;
    MccDeal deal;
    if (!begin(&c, comm, kMccReduceScatter)) return false;
    if (NULL == counts.at || !mcc_deal_counts(&c.plan, counts, &deal) || !deal.even) return leave(&c);
    return deal_out(&c, &deal, in, out, type, op, rc);
}

static bool reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                                 MPI_Comm comm, int* rc) {
    PmpiCall c;
    MccDeal deal;
    if (!begin(&c, comm, kMccReduceScatterBlock)) return false;
    if (!mcc_deal_alike(&c.plan, count, &deal)) return leave(&c);
    return deal_out(&c, &deal, in, out, type, op, rc);
}

// The signatures are MPI's, of one count type (int, MPI_Count) and one of displacements (int, MPI_Aint).
#define ENTRY(name, parameters, served, arguments)                     \
    __attribute__((visibility("default"))) int MPI_##name parameters { \
        int rc = MPI_SUCCESS;                                          \
        return served ? rc : PMPI_##name arguments;                    \
    }
// Displacements of the large calls are addresses.
_Static_assert(sizeof(MPI_Aint) == sizeof(int) || sizeof(MPI_Aint) == sizeof(MPI_Count), "mcc_item()");
#define LIST(items) ((MccList){items, sizeof(*(items)) != sizeof(int)})
#define IN ((MccLayout){.base = in, .count = in_count, .type = in_type})
#define OUT ((MccLayout){.base = out, .count = out_count, .type = out_type})
#define BLOCKS(Count) \
    const void *in, Count in_count, MPI_Datatype in_type, void *out, Count out_count, MPI_Datatype out_type

// clang-format off
#define ENTRIES(suffix, Count, Place) \
    ENTRY(Bcast##suffix, (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm), \
          bcast(buffer, count, type, root, comm, &rc), (buffer, count, type, root, comm)) \
    ENTRY(Reduce##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm), \
          reduce(in, out, count, type, op, root, comm, &rc), (in, out, count, type, op, root, comm)) \
    ENTRY(Allreduce##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          allreduce(in, out, count, type, op, comm, &rc), (in, out, count, type, op, comm)) \
    ENTRY(Allgather##suffix, (BLOCKS(Count), MPI_Comm comm), allgather(IN, OUT, comm, &rc), \
          (in, in_count, in_type, out, out_count, out_type, comm)) \
    ENTRY(Alltoall##suffix, (BLOCKS(Count), MPI_Comm comm), alltoall(IN, OUT, comm, &rc), \
          (in, in_count, in_type, out, out_count, out_type, comm)) \
    ENTRY(Gather##suffix, (BLOCKS(Count), int root, MPI_Comm comm), gather(IN, OUT, root, comm, &rc), \
          (in, in_count, in_type, out, out_count, out_type, root, comm)) \
    ENTRY(Scatter##suffix, (BLOCKS(Count), int root, MPI_Comm comm), scatter(IN, OUT, root, comm, &rc), \
          (in, in_count, in_type, out, out_count, out_type, root, comm)) \
    ENTRY(Allgatherv##suffix, \
          (const void* in, Count in_count, MPI_Datatype in_type, void* out, const Count* counts, \
           const Place* places, MPI_Datatype out_type, MPI_Comm comm), \
          allgatherv(IN, out, LIST(counts), LIST(places), out_type, comm, &rc), \
          (in, in_count, in_type, out, counts, places, out_type, comm)) \
    ENTRY(Reduce_scatter##suffix, \
          (const void* in, void* out, const Count* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          reduce_scatter(in, out, LIST(counts), type, op, comm, &rc), (in, out, counts, type, op, comm)) \
    ENTRY(Reduce_scatter_block##suffix, \
          (const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
          reduce_scatter_block(in, out, count, type, op, comm, &rc), (in, out, count, type, op, comm))

ENTRY(Barrier, (MPI_Comm comm), barrier(comm, &rc), (comm))
ENTRIES(, int, int)
#if MPI_VERSION >= 4
ENTRIES(_c, MPI_Count, MPI_Aint)
#endif
// clang-format on
