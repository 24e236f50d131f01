// One function each for names, buffers, data, the call itself and the check, over all operations: what one of
// them differs in is to be seen side by side. The file owns what perf_open() allocates.
#include "perf_mpi_operations.h"

#include <limits.h>

// The blocking form's name is the other one's, less the i.
static const char* const kNames[kPerfKinds] = {"ibcast",          "ibarrier",
                                               "ireduce",         "iallreduce",
                                               "iallgather",      "iallgatherv",
                                               "igather",         "igatherv",
                                               "iscatter",        "iscatterv",
                                               "ialltoall",       "ialltoallv",
                                               "ireduce_scatter", "ireduce_scatter_block",
                                               "iscan",           "iexscan"};

bool perf_find(const char* name, struct perf_operation* operation) {
    for (int i = 0; i < (int)kPerfKinds; ++i) {
        const bool nonblocking = strcmp(name, kNames[i]) == 0;
        if (!nonblocking && strcmp(name, kNames[i] + 1) != 0) continue;
        *operation = (struct perf_operation){(enum perf_kind)i, nonblocking};
        return true;
    }
    return false;
}

const char* perf_name(struct perf_operation operation) {
    return kNames[operation.kind] + (operation.nonblocking ? 0 : 1);
}

bool perf_is_rooted(enum perf_kind kind) {
    return kind == kBcast || kind == kScatter || kind == kScatterv;
}

bool perf_reduces(enum perf_kind kind) {
    return kind == kReduce || kind == kAllreduce || kind == kReduceScatter || kind == kReduceScatterBlock ||
           kind == kScan || kind == kExscan;
}

static bool has_blocks_to_send(enum perf_kind kind) {
    return kind == kScatter || kind == kScatterv || kind == kAlltoall || kind == kAlltoallv;
}

static bool has_blocks_to_receive(enum perf_kind kind) {
    return kind == kAllgather || kind == kAllgatherv || kind == kGather || kind == kGatherv ||
           kind == kAlltoall || kind == kAlltoallv;
}

// Which elements of a reduce_scatter are whose: one more for each of the first few where that does not come
// out even.
static void deal(struct perf_call* c) {
    const uint64_t size = (uint64_t)c->size, each = c->elements / size, more = c->elements % size;
    for (uint64_t r = 0; r < size; ++r) {
        c->counts[r] = (int)(each + (r < more ? 1 : 0));
        if (r == (uint64_t)c->rank) c->own_first = each * r + (r < more ? r : more);
    }
    c->own_elements = (uint64_t)c->counts[c->rank];
}

const char* perf_open(struct perf_call* c) {
    const enum perf_kind kind = c->operation.kind;
    const uint64_t size = (uint64_t)c->size;
    if (kind == kBarrier) c->bytes = 0;
    if (perf_reduces(kind)) {
        if (c->bytes % 8 != 0) return "reductions need multiples of 8 bytes";
        c->elements = c->bytes / 8;
        // Each gets as much as the others: at least one element, and no rest.
        if (kind == kReduceScatterBlock) c->elements = (c->elements + size - 1) / size * size;
    }
    const uint64_t vector = c->elements * 8;
    c->send_bytes = perf_reduces(kind) ? vector : has_blocks_to_send(kind) ? c->bytes * size : c->bytes;
    c->receive_bytes = perf_reduces(kind) ? vector : has_blocks_to_receive(kind) ? c->bytes * size : c->bytes;
    if (c->send_bytes > INT_MAX || c->receive_bytes > INT_MAX)
        return "a buffer of all ranks' parts must be below 2G";
    c->counts = calloc(size, sizeof(int));
    c->places = calloc(size, sizeof(int));
    if (c->counts == NULL || c->places == NULL) return "no memory";
    for (int r = 0; r < c->size; ++r) {
        c->counts[r] = (int)c->bytes;
        c->places[r] = r * (int)(has_blocks_to_send(kind) || has_blocks_to_receive(kind) ? c->bytes : 0);
    }
    c->own_elements = c->elements;
    if (kind == kReduceScatter || kind == kReduceScatterBlock) {
        deal(c);
        c->receive_bytes = c->own_elements * 8;
    }
    c->send = perf_memory(c->send_bytes);
    c->receive = perf_memory(c->receive_bytes);
    return c->send != NULL && c->receive != NULL ? NULL : "no memory";
}

void perf_close(struct perf_call* c) {
    free(c->counts), free(c->places), free(c->send), free(c->receive);
    c->counts = c->places = NULL;
    c->send = c->receive = NULL;
}

void perf_prepare(struct perf_call* c) {
    const enum perf_kind kind = c->operation.kind;
    ++c->serial;
    perf_spoil(c->receive, c->receive_bytes);
    if (perf_reduces(kind)) {
        perf_fill_addends(c->send, c->elements, c->serial, c->rank);
    } else if (has_blocks_to_send(kind)) {
        if (perf_is_rooted(kind) && c->rank != c->root) return;
        for (int r = 0; r < c->size; ++r)
            perf_fill(c->send + (uint64_t)r * c->bytes, c->bytes, perf_block(c->serial, c->size, c->rank, r));
    } else if (kind == kBcast) {
        if (c->rank == c->root) perf_fill(c->receive, c->bytes, perf_block(c->serial, c->size, c->root, 0));
    } else {
        perf_fill(c->send, c->bytes, perf_block(c->serial, c->size, c->rank, 0));
    }
}

#define CALL(now, later, ...) (q == NULL ? MPI_##now(__VA_ARGS__) : MPI_##later(__VA_ARGS__, q))

int perf_start(struct perf_call* c, MPI_Request* request) {
    MPI_Request* const q = c->operation.nonblocking ? request : NULL;
    const MPI_Comm all = MPI_COMM_WORLD;
    const MPI_Datatype type = perf_reduces(c->operation.kind) ? MPI_DOUBLE : MPI_BYTE;
    const int n = perf_reduces(c->operation.kind) ? (int)c->elements : (int)c->bytes, root = c->root;
    void *const s = c->send, *const r = c->receive;
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
            return CALL(Reduce_scatter_block, Ireduce_scatter_block, s, r, (int)c->own_elements, type,
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

bool perf_verify(const struct perf_call* c) {
    const enum perf_kind kind = c->operation.kind;
    const bool at_root = c->rank == c->root;
    if (!perf_guarded(c->receive, c->receive_bytes)) return false;
    if (kind == kBarrier || (!at_root && (kind == kReduce || kind == kGather || kind == kGatherv)))
        return true;
    if (perf_reduces(kind)) {
        if (kind == kExscan && c->rank == 0) return true;  // MPI leaves its result undefined
        const int ranks = kind == kScan ? c->rank + 1 : kind == kExscan ? c->rank : c->size;
        return perf_holds_sums(c->receive, c->own_first, c->own_elements, c->serial, ranks);
    }
    if (kind == kBcast) return perf_holds(c->receive, c->bytes, perf_block(c->serial, c->size, c->root, 0));
    if (perf_is_rooted(kind))
        return perf_holds(c->receive, c->bytes, perf_block(c->serial, c->size, c->root, c->rank));
    bool good = true;
    for (int r = 0; r < c->size; ++r) {
        const int to = has_blocks_to_send(kind) ? c->rank : 0;
        good &=
            perf_holds(c->receive + (uint64_t)r * c->bytes, c->bytes, perf_block(c->serial, c->size, r, to));
    }
    return good;
}
