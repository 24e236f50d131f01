// Every collective that libmcastcoll-pmpi.so interposes, against the MPI's own: each call is made twice,
// through MPI_... and through PMPI_..., on equal data, and every byte of the buffers is compared, what must
// stay as it was included.
//
// Drawn from a seed: operation, elements, operator, counts, root, in place or not, on the world and on parts
// of it; and on each rank by itself, because members may differ in it: how the message is laid out (as it is,
// with gaps, with pairs in reverse order) and whether the large-count call of MPI 4 is used. Values are small
// integers, so that reductions are exact in any order.
//
// Not drawn is what MPICH 4.0.2 itself does wrong: MIN and MAX of unsigned elements, which it compares as
// signed ones; and MPI_Reduce in place to a root that is not rank 0, or without a buffer for the result on
// other ranks, with which it crashes.

#include <stdbool.h>

#include "mpi_support.h"

enum { kGuard = 64, kFill = 0xa5, kPartEvery = 40, kMostMembers = 256, kTag = 3, kRendezvous = 1 << 20 };

typedef enum {
    kBcast,
    kReduce,
    kAllreduce,
    kAllgather,
    kAllgatherv,
    kGather,
    kScatter,
    kAlltoall,
    kReduceScatter,
    kReduceScatterBlock,
    kBarrier,
    kOperations
} Operation;

static const char* const kNames[kOperations] = {
    "bcast",  "reduce",  "allreduce", "allgather",      "allgatherv",
    "gather", "scatter", "alltoall",  "reduce_scatter", "reduce_scatter_block",
    "barrier"};

typedef struct {
    MPI_Comm comm;
    int rank, size;
} Part;

typedef enum { kPlain, kGaps, kSwapped, kDup, kLayouts } Layout;

typedef struct {
    Operation operation;
    MPI_Datatype type;
    size_t width;
    MPI_Op op;
    size_t count;  // elements of a block, even
    int root;
    bool in_place, large;
    Layout in, out;  // each rank's own
    uint64_t key;
} Plan;

typedef struct {
    uint8_t *memory, *at;
    size_t bytes;
} Buffer;

static bool is_reduction(Operation operation) {
    return operation == kReduce || operation == kAllreduce || operation == kReduceScatter ||
           operation == kReduceScatterBlock;
}

static void make_element(const Plan* p, uint8_t* to, uint64_t random) {
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

// Bytes from one element to the next.
static size_t step_of(const Plan* p, Layout layout) {
    return p->width * (layout == kGaps ? 2 : 1);
}

static Buffer take(const Plan* p, Layout layout, size_t elements) {
    Buffer b = {.bytes = elements * step_of(p, layout) + 2 * kGuard};
    b.memory = malloc(b.bytes);
    if (b.memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    memset(b.memory, kFill, b.bytes);
    b.at = b.memory + kGuard;
    return b;
}

static void fill(const Plan* p, Layout layout, Buffer* b, size_t elements, int rank) {
    uint64_t state = p->key * 31 + (uint64_t)rank;
    for (size_t i = 0; i < elements; ++i)
        make_element(p, b->at + i * step_of(p, layout), next_random(&state));
}

// Pairs of elements make up a swapped layout, hence counts that are even.
static MPI_Datatype make_type(const Plan* p, Layout layout, int* per) {
    MPI_Datatype type = p->type;
    const MPI_Aint width = (MPI_Aint)p->width;
    *per = layout == kSwapped ? 2 : 1;
    if (layout == kDup) MPI_Type_dup(p->type, &type);
    if (layout == kGaps) MPI_Type_create_resized(p->type, 0, 2 * width, &type);
    if (layout == kSwapped) MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[2]){width, 0}, p->type, &type);
    if (layout != kPlain) MPI_Type_commit(&type);
    return type;
}

static size_t blocks_in(const Plan* p, const Part* part) {
    switch (p->operation) {
        case kScatter:
        case kAlltoall:
        case kReduceScatterBlock:
            return (size_t)part->size;
        default:
            return 1;
    }
}

static size_t blocks_out(const Plan* p, const Part* part) {
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

// Counts of the v operations. MPI_Allgatherv's places have gaps on some ranks.
typedef struct {
    int counts[kMostMembers], places[kMostMembers], sum;
} Lists;

static Lists make_lists(const Plan* p, const Part* part, int per, bool gaps) {
    Lists l = {.sum = 0};
    uint64_t state = p->key;
    const uint64_t kind = next_random(&state) % 3;  // as the provider deals, all alike, any
    for (int i = 0, place = 0; i < part->size; ++i) {
        const uint64_t any = random_between(&state, 0, p->count / 2);
        l.counts[i] = kind == 1 ? (int)p->count : kind == 2 ? 2 * (int)any : (int)p->count + 2 * (i < 1);
        l.places[i] = place / per;
        place += l.counts[i] + (gaps ? 2 : 0);
        l.sum += l.counts[i];
        l.counts[i] /= per;
    }
    return l;
}

static int perform(const Plan* p, const Part* part, bool reference, Buffer* in_buffer, Buffer* out_buffer,
                   int* sum) {
    int in_per, out_per, rc = MPI_SUCCESS;
    MPI_Datatype in_type = make_type(p, p->in, &in_per), out_type = make_type(p, p->out, &out_per);
    const int ni = (int)p->count / in_per, no = (int)p->count / out_per, n = (int)p->count;
    const bool am_root = part->rank == p->root;
    void *in = in_buffer->at, *out = out_buffer->at;
    const bool rooted = p->operation == kReduce || p->operation == kGather;
    const void* from = p->in_place && (am_root || !rooted) ? MPI_IN_PLACE : in;
    const Lists l = make_lists(p, part, p->operation == kAllgatherv ? out_per : 1, p->in == kGaps);
    *sum = l.sum;
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

static bool check(const Plan* p, const Part* part) {
    Buffer in[2], out[2];
    bool good = true;
    for (int reference = 0; reference < 2; ++reference) {
        // Room for the sums of all counts and gaps, and inputs that are put where results go.
        const size_t most = (p->count + 4) * (size_t)part->size;
        const size_t in_elements = p->operation == kReduceScatter || p->operation == kAllgatherv
                                       ? most
                                       : p->count * blocks_in(p, part);
        const size_t out_elements =
            is_reduction(p->operation) || p->operation == kAllgatherv ? most : p->count * blocks_out(p, part);
        in[reference] = take(p, p->in, in_elements);
        out[reference] = take(p, p->out, out_elements);
        fill(p, p->in, &in[reference], in_elements, part->rank);
        if (p->in_place) fill(p, p->out, &out[reference], out_elements, part->rank);
        int sum;
        good = perform(p, part, reference, &in[reference], &out[reference], &sum) == MPI_SUCCESS && good;
    }
    // In place the rest of a reduce_scatter's vector is MPI's to use.
    size_t compared = out[0].bytes;
    if (p->in_place && (p->operation == kReduceScatter || p->operation == kReduceScatterBlock)) {
        const Lists l = make_lists(p, part, 1, false);
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

static Plan draw(const Part* part, uint64_t key, size_t max) {
    const struct {
        MPI_Datatype type;
        size_t width;
        unsigned operators;  // bits of kOperators
    } kTypes[] = {{MPI_INT, sizeof(int), 0x3f},
                  {MPI_DOUBLE, sizeof(double), 0x07},
                  {MPI_FLOAT, sizeof(float), 0x07},
                  {MPI_UNSIGNED_SHORT, 2, 0x39},
                  {MPI_BYTE, 1, 0x10},
                  {MPI_LONG, sizeof(long), 0x3f},
                  {MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double), 0x01},
                  {MPI_INT8_T, 1, 0x36}};
    const MPI_Op kOperators[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_LOR, MPI_BXOR, MPI_BAND};
    uint64_t state = key, own = key + 77 * (uint64_t)part->rank;
    Plan p = {.key = next_random(&state)};
    p.operation = (Operation)(next_random(&state) % kOperations);
    const size_t type = next_random(&state) % (sizeof(kTypes) / sizeof(kTypes[0]));
    p.type = kTypes[type].type;
    p.width = kTypes[type].width;
    size_t op;
    do op = next_random(&state) % (sizeof(kOperators) / sizeof(kOperators[0]));
    while (!(kTypes[type].operators >> op & 1));
    p.op = kOperators[op];
    uint64_t limit = 2;  // as many of each order of magnitude
    while (limit < max / p.width && next_random(&state) % 6 != 0) limit *= 2;
    p.count = 2 * random_between(&state, 0, limit / 2);
    p.root = (int)random_between(&state, 0, (uint64_t)part->size - 1);
    p.in_place = p.operation != kBcast && next_random(&state) % 3 == 0;
    p.large = next_random(&own) % 4 == 0;
    if (p.operation == kReduce && p.root != 0) p.in_place = false;
    if (is_reduction(p.operation)) return p;
    p.in = next_random(&own) % 2 ? kPlain : (Layout)(next_random(&own) % kLayouts);
    uint64_t* drawn_by = p.operation == kAllgatherv ? &state : &own;
    p.out = next_random(drawn_by) % 2 ? kPlain : (Layout)(next_random(drawn_by) % kLayouts);
    return p;
}

// A broadcast's root that first receives a large message from a member which is in the broadcast already: MPI
// has to go on in there.
static bool check_progress(const Part* part) {
    if (part->size < 2) return true;
    static uint8_t message[kRendezvous];
    MPI_Request request;
    int value = part->rank == 0 ? 4711 : 0;
    MPI_Barrier(part->comm);  // the making of the group is behind us
    if (part->rank == 1) MPI_Isend(message, kRendezvous, MPI_BYTE, 0, kTag, part->comm, &request);
    if (part->rank == 0) MPI_Recv(message, kRendezvous, MPI_BYTE, 1, kTag, part->comm, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, 0, part->comm);
    if (part->rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    return value == 4711;
}

static Part make_part(MPI_Comm comm) {
    Part part = {.comm = comm};
    MPI_Comm_rank(comm, &part.rank);
    MPI_Comm_size(comm, &part.size);
    return part;
}

int main(int argc, char** argv) {
    static const char kHelp[] =
        "usage: mpiexec ... mpi_pmpi_check [OPERATIONS [BYTES [SEED]]]\n"
        "  OPERATIONS  how many [300];  BYTES  of a block at most [64K];  SEED  of the plan [1]\n"
        "Numbers take K, M and G.\n";
    uint64_t numbers[3] = {300, 64 << 10, 1}, failures = 0, all = 0;
    bool bad = argc > 4;
    MPI_Init(&argc, &argv);
    const Part world = make_part(MPI_COMM_WORLD);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) leave(world.rank, 0, kHelp);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        leave(world.rank, 0, "mpi_pmpi_check " MCC_VERSION "\n");
    for (int i = 1; i < argc && !bad; ++i) bad = parse_size(argv[i], &numbers[i - 1]) != 0;
    if (bad || numbers[1] < 32 || numbers[1] > 1 << 24 || world.size > kMostMembers) {
        leave(world.rank, 2, "mpi_pmpi_check: up to three numbers, BYTES from 32 to 16M; see --help\n");
    }
    Part part = {.comm = MPI_COMM_NULL};
    uint64_t state = numbers[2];
    failures += !check_progress(&world);
    for (uint64_t i = 0; i < numbers[0]; ++i) {
        const uint64_t key = next_random(&state);
        if (i % kPartEvery == 0) {
            if (part.comm != MPI_COMM_NULL) MPI_Comm_free(&part.comm);
            MPI_Comm_split(MPI_COMM_WORLD, (int)(key % 2) * (world.rank % 2), -world.rank, &part.comm);
            part = make_part(part.comm);
        }
        const Part* where = key % 4 == 0 ? &part : &world;
        const Plan plan = draw(where, key, numbers[1]);
        if (check(&plan, where)) continue;
        fprintf(stderr, "rank %d, call %llu: BAD %s of %zu x %zu bytes, root %d%s%s, layouts %d %d\n",
                where->rank, (unsigned long long)i, kNames[plan.operation], plan.count, plan.width, plan.root,
                plan.in_place ? ", in place" : "", plan.large ? ", large" : "", (int)plan.in, (int)plan.out);
        ++failures;
    }
    MPI_Comm_free(&part.comm);
    MPI_Allreduce(&failures, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank == 0)
        printf("mpi_pmpi_check: %d ranks, seed %llu: %llu checked, %llu bad\n", world.size,
               (unsigned long long)numbers[2], (unsigned long long)numbers[0], (unsigned long long)all);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
