// Makes two calls on equal data and compares the buffers.

#include "mpi_pmpi_calls.h"

enum { kGuard = 64, kFill = 0xa5 };

const char* const pmpi_operation_names[kOperations] = {
    "bcast",  "barrier", "reduce",   "allreduce",      "allgather",           "allgatherv",
    "gather", "scatter", "alltoall", "reduce_scatter", "reduce_scatter_block"};

typedef struct {
    uint8_t *memory, *at;
    size_t bytes;
} Buffer;

Part pmpi_make_part(MPI_Comm comm) {
    Part part = {.comm = comm};
    MPI_Comm_rank(comm, &part.rank);
    MPI_Comm_size(comm, &part.size);
    return part;
}

bool pmpi_is_reduction(Operation operation) {
    return operation == kReduce || operation == kAllreduce || operation == kReduceScatter ||
           operation == kReduceScatterBlock;
}

static void make_element(const Call* p, uint8_t* to, uint64_t random) {
    const int small = (int)(random % 7) - 3;
    if (p->type == MPI_DOUBLE)
        memcpy(to, &(double){small}, sizeof(double));
    else if (p->type == MPI_FLOAT)
        memcpy(to, &(float){(float)small}, sizeof(float));
    else if (p->type == MPI_C_DOUBLE_COMPLEX)
        memcpy(to, (double[2]){small, 1}, 2 * sizeof(double));
    else
        memcpy(to, &random, p->width < sizeof(random) ? p->width : sizeof(random));
}

// Returns the distance between elements in bytes.
static size_t step_of(const Call* p, Layout layout) {
    return p->width * (layout == kGaps ? 2 : 1);
}

static Buffer take(const Call* p, Layout layout, size_t elements) {
    Buffer b = {.bytes = elements * step_of(p, layout) + 2 * kGuard};
    b.memory = malloc(b.bytes);
    if (b.memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    memset(b.memory, kFill, b.bytes);
    b.at = b.memory + kGuard;
    return b;
}

static void fill(const Call* p, Layout layout, Buffer* b, size_t elements, int rank) {
    uint64_t state = p->key * 31 + (uint64_t)rank;
    const size_t step = step_of(p, layout);
    for (size_t i = 0; i < elements && p->type != MPI_BYTE; ++i)
        make_element(p, b->at + i * step, next_random(&state));
    uint64_t random = 0;
    for (size_t i = 0; i < elements && p->type == MPI_BYTE; ++i, random >>= 8) {
        if (i % sizeof(random) == 0) random = next_random(&state);
        b->at[i * step] = (uint8_t)random;
    }
}

// Makes the datatype of a layout, with *per elements. A swapped layout consists of pairs, so counts are even.
static MPI_Datatype make_type(const Call* p, Layout layout, int* per) {
    MPI_Datatype type = p->type;
    const MPI_Aint width = (MPI_Aint)p->width;
    *per = layout == kSwapped ? 2 : 1;
    if (layout == kDup) MPI_Type_dup(p->type, &type);
    if (layout == kGaps) MPI_Type_create_resized(p->type, 0, 2 * width, &type);
    if (layout == kSwapped) MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[2]){width, 0}, p->type, &type);
    if (layout != kPlain) MPI_Type_commit(&type);
    return type;
}

static size_t blocks_in(const Call* p, const Part* part) {
    switch (p->operation) {
        case kScatter:
        case kAlltoall:
        case kReduceScatterBlock:
            return (size_t)part->size;
        default:
            return 1;
    }
}

static size_t blocks_out(const Call* p, const Part* part) {
    switch (p->operation) {
        case kAllgather:
        case kAllgatherv:
        case kGather:
        case kAlltoall:
            return (size_t)part->size;
        default:
            return 1;
    }
}

#define CALL(name, ...) (reference ? PMPI_##name(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#define CALL_LARGE(name, ...) \
    (reference ? PMPI_##name(__VA_ARGS__) : p->large ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))

static int count_of(const Call* p, const Part* part, int rank, int per, uint64_t* state) {
    const int count = (int)p->count, any = (int)random_between(state, 0, p->count / 2), half = part->size / 2;
    switch (p->shape) {
        case kDistributed:
            return count + (rank < 1 ? per : 0);
        case kAlike:
            break;
        case kAny:
            return 2 * any;
        case kStairs:
            return count > rank ? count - rank : 0;
        case kHalf:
            return (rank < half ? count : 0) + (rank == (p->extra < 0 ? 0 : half) ? p->extra : 0);
    }
    return count;
}

// Makes the counts and displacements of a call. MPI_Allgatherv's displacements have gaps on some ranks.
Lists pmpi_make_lists(const Call* p, const Part* part, int per) {
    Lists l = {.sum = 0};
    uint64_t state = p->key;
    const int gap = p->operation == kAllgatherv && p->in == kGaps ? 2 : 0;
    for (int i = 0; i < part->size; ++i) {
        l.counts[i] = count_of(p, part, i, per, &state);
        l.sum += l.counts[i];
        l.largest = l.counts[i] > l.largest ? l.counts[i] : l.largest;
    }
    for (int i = 0, place = 0; i < part->size; ++i) {
        const int rank = p->backwards ? part->size - 1 - i : i;
        l.places[rank] = place / per;
        place += l.counts[rank] + gap;
    }
    for (int i = 0; i < part->size; ++i) l.counts[i] /= per;
    return l;
}

static int perform(const Call* p, const Part* part, bool reference, Buffer* in_buffer, Buffer* out_buffer) {
    int in_per, out_per, rc = MPI_SUCCESS;
    MPI_Datatype in_type = make_type(p, p->in, &in_per), out_type = make_type(p, p->out, &out_per);
    const int n = (int)p->count;
    MPI_Count ni = n / in_per, no = n / out_per;
    const bool am_root = part->rank == p->root;
    void *in = in_buffer->at, *out = out_buffer->at;
    const bool rooted = p->operation == kReduce || p->operation == kGather;
    const void* from = p->in_place && (am_root || !rooted) ? MPI_IN_PLACE : in;
    // Arguments that MPI ignores may have any value.
    const MPI_Count unused = p->large && !reference ? INT64_MAX : INT32_MAX;
    if (p->operation == kScatter ? !am_root : from == MPI_IN_PLACE) ni = unused;
    if (p->operation == kGather && !am_root) no = unused;
    const Lists l = pmpi_make_lists(p, part, p->operation == kAllgatherv ? out_per : 1);
    switch (p->operation) {
        case kBcast:
            rc = CALL_LARGE(Bcast, in, ni, in_type, p->root, part->comm);
            break;
        case kReduce:
            rc = CALL_LARGE(Reduce, from, out, n, p->type, p->op, p->root, part->comm);
            break;
        case kAllreduce:
            rc = CALL_LARGE(Allreduce, from, out, n, p->type, p->op, part->comm);
            break;
        case kAllgather:
            rc = CALL_LARGE(Allgather, from, ni, in_type, out, no, out_type, part->comm);
            break;
        case kAllgatherv:
            rc = CALL(Allgatherv, from, l.counts[part->rank] * out_per / in_per, in_type, out, l.counts,
                      l.places, out_type, part->comm);
            break;
        case kGather:
            rc = CALL_LARGE(Gather, from, ni, in_type, out, no, out_type, p->root, part->comm);
            break;
        case kScatter:
            rc = CALL_LARGE(Scatter, in, ni, in_type, p->in_place && am_root ? MPI_IN_PLACE : out, no,
                            out_type, p->root, part->comm);
            break;
        case kAlltoall:
            rc = CALL_LARGE(Alltoall, from, ni, in_type, out, no, out_type, part->comm);
            break;
        case kReduceScatter:
            rc = CALL(Reduce_scatter, from, out, l.counts, p->type, p->op, part->comm);
            break;
        case kReduceScatterBlock:
            rc = CALL_LARGE(Reduce_scatter_block, from, out, n, p->type, p->op, part->comm);
            break;
        case kBarrier:
        case kOperations:
            rc = CALL(Barrier, part->comm);
            break;
    }
    if (p->in != kPlain) MPI_Type_free(&in_type);
    if (p->out != kPlain) MPI_Type_free(&out_type);
    return rc;
}

bool pmpi_check_call(const Call* p, const Part* part) {
    Buffer in[2], out[2];
    bool good = true;
    for (int reference = 0; reference < 2; ++reference) {
        // Room for the counts and gaps, and for inputs in the result buffer.
        const size_t max = (p->count + 4) * (size_t)part->size;
        const size_t in_elements = p->operation == kReduceScatter || p->operation == kAllgatherv
                                       ? max
                                       : p->count * blocks_in(p, part);
        const size_t out_elements = pmpi_is_reduction(p->operation) || p->operation == kAllgatherv
                                        ? max
                                        : p->count * blocks_out(p, part);
        in[reference] = take(p, p->in, in_elements);
        out[reference] = take(p, p->out, out_elements);
        fill(p, p->in, &in[reference], in_elements, part->rank);
        if (p->in_place) fill(p, p->out, &out[reference], out_elements, part->rank);
        good = perform(p, part, reference, &in[reference], &out[reference]) == MPI_SUCCESS && good;
    }
    // With MPI_IN_PLACE, MPI may change the rest of a reduce_scatter's vector.
    size_t compared = out[0].bytes;
    if (p->in_place && (p->operation == kReduceScatter || p->operation == kReduceScatterBlock)) {
        const Lists l = pmpi_make_lists(p, part, 1);
        const size_t mine = p->operation == kReduceScatter ? (size_t)l.counts[part->rank] : p->count;
        compared = kGuard + mine * p->width;
    }
    good = good && memcmp(in[0].memory, in[1].memory, in[0].bytes) == 0;
    good = good && memcmp(out[0].memory, out[1].memory, compared) == 0;
    for (int i = 0; i < 2; ++i) {
        free(in[i].memory);
        free(out[i].memory);
    }
    return good;
}

void pmpi_print_call(const Call* p, const Part* part) {
    fprintf(stderr,
            "BAD on rank %d of %d: %s of %zu x %zu bytes, root %d%s%s%s, layouts %d %d, shape %d%+d\n",
            part->rank, part->size, pmpi_operation_names[p->operation], p->count, p->width, p->root,
            p->in_place ? ", in place" : "", p->large ? ", large" : "", p->backwards ? ", backwards" : "",
            (int)p->in, (int)p->out, (int)p->shape, p->extra);
}
