// One table of all operations, and one function each for the buffers and the call itself: what one of them
// differs in is to be seen side by side. The file owns what perf_open() allocates.
#include "perf_mpi_operations.h"

#include <limits.h>

struct traits {
    const char* name;  // of the nonblocking form; the blocking one's is the same, less the i
    int does;
};
static const struct traits kTraits[kPerfKinds] = {
    [kBcast] = {"ibcast", kPerfRooted},
    [kBarrier] = {"ibarrier", 0},
    [kReduce] = {"ireduce", kPerfReduces | kPerfToRoot},
    [kAllreduce] = {"iallreduce", kPerfReduces},
    [kAllgather] = {"iallgather", kPerfTakes},
    [kAllgatherv] = {"iallgatherv", kPerfTakes},
    [kGather] = {"igather", kPerfTakes | kPerfToRoot},
    [kGatherv] = {"igatherv", kPerfTakes | kPerfToRoot},
    [kScatter] = {"iscatter", kPerfRooted | kPerfDeals},
    [kScatterv] = {"iscatterv", kPerfRooted | kPerfDeals},
    [kAlltoall] = {"ialltoall", kPerfDeals | kPerfTakes},
    [kAlltoallv] = {"ialltoallv", kPerfDeals | kPerfTakes},
    [kReduceScatter] = {"ireduce_scatter", kPerfReduces | kPerfSpreads},
    [kReduceScatterBlock] = {"ireduce_scatter_block", kPerfReduces | kPerfSpreads},
    [kScan] = {"iscan", kPerfReduces},
    [kExscan] = {"iexscan", kPerfReduces},
};

bool perf_find(const char* name, struct perf_operation* operation) {
    for (int i = 0; i < (int)kPerfKinds; ++i) {
        const bool nonblocking = strcmp(name, kTraits[i].name) == 0;
        if (!nonblocking && strcmp(name, kTraits[i].name + 1) != 0) continue;
        *operation = (struct perf_operation){(enum perf_kind)i, nonblocking};
        return true;
    }
    return false;
}

const char* perf_name(struct perf_operation operation) {
    return kTraits[operation.kind].name + (operation.nonblocking ? 0 : 1);
}

const char* perf_open(struct perf_call* c) {
    const enum perf_kind kind = c->operation.kind;
    struct perf_side* s = &c->side;
    const uint64_t size = (uint64_t)s->size;
    s->does = kTraits[kind].does;
    if (kind == kBarrier) s->bytes = 0;
    if (s->does & kPerfReduces) {
        if (s->bytes % 8 != 0) return "reductions need multiples of 8 bytes";
        s->elements = s->bytes / 8;
        // Each gets as much as the others: at least one element, and no rest.
        if (kind == kReduceScatterBlock) s->elements = (s->elements + size - 1) / size * size;
    }
    perf_lay_out(s);
    if (s->send_bytes > INT_MAX || s->receive_bytes > INT_MAX)
        return "a buffer of all ranks' parts must be below 2G";
    if (kind == kScan) s->summed = s->rank + 1;
    if (kind == kExscan) s->summed = s->rank;
    if (kind == kExscan && s->rank == 0) s->own_elements = 0;  // MPI leaves its result undefined
    c->counts = calloc(size, sizeof(int));
    c->places = calloc(size, sizeof(int));
    if (c->counts == NULL || c->places == NULL) return "no memory";
    for (int r = 0; r < s->size; ++r) {
        c->counts[r] = (int)(s->does & kPerfSpreads ? perf_part(s, r) : s->bytes);
        c->places[r] = s->does & (kPerfDeals | kPerfTakes) ? r * (int)s->bytes : 0;
    }
    s->send = perf_memory(s->send_bytes);
    s->receive = perf_memory(s->receive_bytes);
    return s->send != NULL && s->receive != NULL ? NULL : "no memory";
}

void perf_close(struct perf_call* c) {
    free(c->counts), free(c->places), free(c->side.send), free(c->side.receive);
}

#define CALL(now, later, ...) (q == NULL ? MPI_##now(__VA_ARGS__) : MPI_##later(__VA_ARGS__, q))

int perf_start(struct perf_call* c, MPI_Request* request) {
    MPI_Request* const q = c->operation.nonblocking ? request : NULL;
    const MPI_Comm all = MPI_COMM_WORLD;
    const bool reduces = (c->side.does & kPerfReduces) != 0;
    const MPI_Datatype type = reduces ? MPI_DOUBLE : MPI_BYTE;
    const int n = (int)(reduces ? c->side.elements : c->side.bytes), root = c->side.root;
    void *const s = c->side.send, *const r = c->side.receive;
    switch (c->operation.kind) {
        case kBcast:
            return CALL(Bcast, Ibcast, r, n, type, root, all);
        case kBarrier:
            return CALL(Barrier, Ibarrier, all);
        case kReduce:
            return CALL(Reduce, Ireduce, s, r, n, type, MPI_SUM, root, all);
        case kAllreduce:
            return CALL(Allreduce, Iallreduce, s, r, n, type, MPI_SUM, all);
        case kAllgather:
            return CALL(Allgather, Iallgather, s, n, type, r, n, type, all);
        case kAllgatherv:
            return CALL(Allgatherv, Iallgatherv, s, n, type, r, c->counts, c->places, type, all);
        case kGather:
            return CALL(Gather, Igather, s, n, type, r, n, type, root, all);
        case kGatherv:
            return CALL(Gatherv, Igatherv, s, n, type, r, c->counts, c->places, type, root, all);
        case kScatter:
            return CALL(Scatter, Iscatter, s, n, type, r, n, type, root, all);
        case kScatterv:
            return CALL(Scatterv, Iscatterv, s, c->counts, c->places, type, r, n, type, root, all);
        case kAlltoall:
            return CALL(Alltoall, Ialltoall, s, n, type, r, n, type, all);
        case kAlltoallv:
            return CALL(Alltoallv, Ialltoallv, s, c->counts, c->places, type, r, c->counts, c->places, type,
                        all);
        case kReduceScatter:
            return CALL(Reduce_scatter, Ireduce_scatter, s, r, c->counts, type, MPI_SUM, all);
        case kReduceScatterBlock:
            return CALL(Reduce_scatter_block, Ireduce_scatter_block, s, r, (int)c->side.own_elements, type,
                        MPI_SUM, all);
        case kScan:
            return CALL(Scan, Iscan, s, r, n, type, MPI_SUM, all);
        case kExscan:
            return CALL(Exscan, Iexscan, s, r, n, type, MPI_SUM, all);
        case kPerfKinds:
            break;
    }
    return MPI_ERR_OTHER;
}
