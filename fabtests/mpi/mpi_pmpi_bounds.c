// Crosses every limit of libmcastcoll-pmpi.so: one less, exactly, one more. Each call is compared with MPI's
// own (mpi_pmpi_calls.h). Rank 0 prints how many of its calls the library should have served, in the format
// of the library's report.
//
// The limits: the bounce buffer kept by a group (1 MiB); MCASTCOLL_PMPI_BYTES and _MIN_MEMBERS,
// read here as in the library; the share of padding in an allgatherv; the evenness of a reduce_scatter's
// counts; the depth of nested datatypes; the number of lingering groups.

#include "mpi_pmpi_calls.h"

enum { kKept = 1 << 20, kDeepest = 8, kMaxOrphans = 32 };

// The size that crosses the limit: a block, the blocks of a call, these blocks twice (input and output), or a
// block and an element (a member's slice has room for an additional element).
typedef enum { kBlock, kAll, kBoth, kSlice } Crosses;

typedef struct {
    Operation operation;
    Layout in, out;
    bool in_place;
    Crosses crosses;
    Shape shape;
    bool backwards;
} Case;

// Calls that use the bounce buffer.
static const Case kBounced[] = {
    {kBcast, kGaps, kPlain, false, kBlock, kAlike, false},
    {kAllgather, kGaps, kPlain, false, kBlock, kAlike, false},
    {kAllgather, kPlain, kGaps, false, kAll, kAlike, false},
    {kAllgather, kPlain, kGaps, true, kAll, kAlike, false},
    {kAllgatherv, kPlain, kGaps, false, kAll, kAlike, false},
    {kAllgatherv, kGaps, kPlain, false, kBlock, kAlike, false},
    {kGather, kGaps, kPlain, false, kBlock, kAlike, false},
    {kGather, kPlain, kGaps, false, kAll, kAlike, false},
    {kGather, kPlain, kGaps, true, kAll, kAlike, false},
    {kScatter, kGaps, kPlain, false, kAll, kAlike, false},
    {kScatter, kPlain, kGaps, false, kBlock, kAlike, false},
    {kScatter, kPlain, kPlain, true, kBlock, kAlike, false},
    {kAlltoall, kGaps, kGaps, false, kBoth, kAlike, false},
    {kAlltoall, kPlain, kPlain, true, kAll, kAlike, false},
    {kAlltoall, kPlain, kGaps, true, kBoth, kAlike, false},
    {kReduceScatter, kPlain, kPlain, true, kSlice, kAlike, false},
    {kReduceScatterBlock, kPlain, kPlain, true, kSlice, kAlike, false},
};

// MPI_Allgatherv with blocks of different sizes or in reverse order.
static const Case kUneven[] = {
    {kAllgatherv, kPlain, kPlain, false, kAll, kStairs, false},
    {kAllgatherv, kPlain, kPlain, true, kAll, kStairs, false},
    {kAllgatherv, kPlain, kPlain, false, kAll, kAlike, true},
};

static const Case kMeasured[] = {
    {kBcast, kPlain, kPlain, false, kBlock, kAlike, false},
    {kReduce, kPlain, kPlain, false, kBlock, kAlike, false},
    {kAllreduce, kPlain, kPlain, false, kBlock, kAlike, false},
    {kAllgather, kPlain, kPlain, false, kAll, kAlike, false},
    {kAllgatherv, kPlain, kPlain, false, kAll, kStairs, false},
    {kGather, kPlain, kPlain, false, kAll, kAlike, false},
    {kScatter, kPlain, kPlain, false, kAll, kAlike, false},
    {kAlltoall, kPlain, kPlain, false, kAll, kAlike, false},
    {kReduceScatter, kPlain, kPlain, false, kAll, kAlike, false},
    {kReduceScatterBlock, kPlain, kPlain, false, kAll, kAlike, false},
};

typedef struct {
    uint64_t min_bytes, max_bytes, min_members;
    uint64_t served[kOperations], made[kOperations], failures, calls;
} Run;

static uint64_t bound_of(const char* text, uint64_t usual) {
    return text == NULL || parse_size(text, &usual) == 0 ? usual : 0;
}

// Reads the bounds in MCASTCOLL_PMPI_BYTES, which are MIN-MAX.
static void read_bytes(Run* r) {
    char text[64] = "0-1G";
    if (getenv("MCASTCOLL_PMPI_BYTES") != NULL)
        snprintf(text, sizeof(text), "%s", getenv("MCASTCOLL_PMPI_BYTES"));
    char* const max = strchr(text, '-');
    if (max != NULL) *max = '\0';
    r->min_bytes = bound_of(text, 0);
    r->max_bytes = bound_of(max != NULL ? max + 1 : NULL, 1 << 30);
}

static uint64_t elements_of(const Call* p, const Part* part) {
    const Lists l = pmpi_make_lists(p, part, 1);
    switch (p->operation) {
        case kBcast:
        case kReduce:
        case kAllreduce:
            return p->count;
        case kReduceScatter:
            return (uint64_t)l.sum;
        case kAllgatherv:
            return (uint64_t)l.largest * (uint64_t)part->size;
        default:
            return p->count * (uint64_t)part->size;
    }
}

static bool should_be_served(const Run* r, const Call* p, const Part* part) {
    const Lists l = pmpi_make_lists(p, part, 1);
    const uint64_t elements = elements_of(p, part), bytes = elements * p->width;
    if ((uint64_t)part->size < r->min_members || bytes == 0) return false;
    if (bytes < r->min_bytes || bytes > r->max_bytes) return false;
    if (p->operation == kAllgatherv) return 4 * (elements - (uint64_t)l.sum) <= elements;
    for (int i = 0; p->operation == kReduceScatter && i < part->size; ++i)
        if (l.counts[i] != l.sum / part->size + (i < l.sum % part->size)) return false;
    return true;
}

static void call(Run* r, const Call* drawn, const Part* part) {
    ++r->calls;
    ++r->made[drawn->operation];
    r->served[drawn->operation] += should_be_served(r, drawn, part);
    if (pmpi_check_call(drawn, part)) return;
    pmpi_print_call(drawn, part);
    ++r->failures;
}

static Call call_of(const Case* c, size_t count, int root) {
    Call p = {.operation = c->operation, .type = MPI_BYTE, .width = 1, .op = MPI_SUM, .count = count};
    if (pmpi_is_reduction(c->operation)) {
        p.type = MPI_INT;
        p.width = sizeof(int);
    }
    p.root = c->operation == kReduce ? 0 : root;
    p.in_place = c->in_place;
    p.in = c->in;
    p.out = c->out;
    p.shape = c->shape;
    p.backwards = c->backwards;
    p.large = root % 2 == 1;
    p.key = count;
    return p;
}

// Makes each call at `bound` bytes, and with one element less and one more in each block: a bound on all
// blocks of a call is crossed by an element per block.
static void cross(Run* r, const Case* cases, size_t count, uint64_t bound, const Part* part) {
    for (size_t i = 0; i < count; ++i) {
        const Case* c = &cases[i];
        Call p = call_of(c, 0, (int)(i % (size_t)part->size));
        const uint64_t members = c->crosses == kAll    ? (uint64_t)part->size
                                 : c->crosses == kBoth ? 2 * (uint64_t)part->size
                                                       : 1;
        const uint64_t exactly = bound / p.width / members - (c->crosses == kSlice ? 1 : 0);
        for (int step = -1; step <= 1; ++step) {
            p.count = exactly + (uint64_t)(int64_t)step;
            call(r, &p, part);
        }
    }
}

// Crosses the limits of shapes: padding of half of the traffic, or of a quarter; counts of a reduce_scatter
// that are even, or nearly even.
static void cross_shapes(Run* r, const Part* part) {
    for (int step = -2; step <= 2; ++step) {
        Case c = {.operation = kAllgatherv, .shape = kHalf};
        Call p = call_of(&c, 3000, 0);
        p.extra = step;
        call(r, &p, part);
        p.extra = step + 3000 * (part->size / 2 - part->size / 4);
        if (part->size % 4 == 0 && step <= 0) call(r, &p, part);
        c = (Case){.operation = kReduceScatter, .shape = step % 2 == 0 ? kStairs : kDistributed};
        p = call_of(&c, step == 0 ? 0 : (size_t)(1000 + step), 0);
        call(r, &p, part);
    }
}

static void cross_members(Run* r, const Part* world) {
    static const Case kSmall = {.operation = kBcast, .shape = kAlike};
    for (int members = 1; members <= world->size; ++members) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, world->rank < members ? 0 : MPI_UNDEFINED, world->rank, &comm);
        if (comm == MPI_COMM_NULL) continue;
        const Part part = pmpi_make_part(comm);
        const Call p = call_of(&kSmall, r->min_bytes + 10, 0);
        call(r, &p, &part);
        MPI_Comm_free(&comm);
    }
}

// Crosses the limit of nested datatypes, including a datatype made with a large count.
static void cross_depth(Run* r, const Part* part) {
    const int elements = (int)r->min_bytes + 10;
    for (int depth = kDeepest - 2; depth <= kDeepest + 1; ++depth) {
        MPI_Datatype type, inner = MPI_BYTE;
#if MPI_VERSION >= 4
        MPI_Type_contiguous_c(1, MPI_BYTE, &inner);
#endif
        if (depth < kDeepest - 1) MPI_Type_dup(inner, &type);
        if (depth >= kDeepest - 1) MPI_Type_contiguous(1, MPI_BYTE, &type);
        if (inner != MPI_BYTE) MPI_Type_free(&inner);
        for (int i = 1; i < depth; ++i) {
            inner = type;
            MPI_Type_contiguous(1, inner, &type);
            MPI_Type_free(&inner);
        }
        MPI_Type_commit(&type);
        uint8_t* memory = calloc((size_t)elements, 1);
        if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
        for (int i = 0; part->rank == 0 && i < elements; ++i)
            memory[i] = pattern_byte((uint64_t)depth, (uint64_t)i);
        bool good = MPI_Bcast(memory, elements, type, 0, part->comm) == MPI_SUCCESS;
        for (int i = 0; i < elements; ++i)
            good = good && memory[i] == pattern_byte((uint64_t)depth, (uint64_t)i);
        ++r->calls;
        ++r->made[kBcast];
        ++r->served[kBcast];
        r->failures += !good;
        if (!good) fprintf(stderr, "rank %d: BAD broadcast of a datatype %d deep\n", part->rank, depth);
        free(memory);
        MPI_Type_free(&type);
    }
}

static void cross_orphans(Run* r) {
    static const Case kSmall = {.operation = kBcast, .shape = kAlike};
    for (int i = 0; i < kMaxOrphans + 2; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        const Part part = pmpi_make_part(comm);
        const Call p = call_of(&kSmall, r->min_bytes + 10, i % part.size);
        call(r, &p, &part);
        MPI_Comm_free(&comm);
    }
}

static void report(const Run* r, int members) {
    const char* between = "";
    printf("mpi_pmpi_bounds: %d ranks: %llu checked, %llu bad\nshould be served: ", members,
           (unsigned long long)r->calls, (unsigned long long)r->failures);
    for (int i = 0; i < kOperations; ++i) {
        if (r->made[i] == 0) continue;
        printf("%s%s %llu/%llu", between, pmpi_operation_names[i], (unsigned long long)r->served[i],
               (unsigned long long)r->made[i]);
        between = ", ";
    }
    printf("\n");
}

int main(int argc, char** argv) {
    static const char kHelp[] =
        "usage: mpiexec ... mpi_pmpi_bounds [PART..]\n"
        "  PART  bounce, uneven, bytes, shapes, members, depth or orphans; without any all of them\n";
    static const char* const kParts[] = {"bounce", "bytes",   "shapes", "members",
                                         "depth",  "orphans", "uneven"};
    enum { kParted = sizeof(kParts) / sizeof(kParts[0]) };
    bool wanted[kParted] = {false}, known = true;
    MPI_Init(&argc, &argv);
    const Part world = pmpi_make_part(MPI_COMM_WORLD);
    Run r = {.min_members = bound_of(getenv("MCASTCOLL_PMPI_MIN_MEMBERS"), 2)};
    read_bytes(&r);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) leave(world.rank, 0, kHelp);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        leave(world.rank, 0, "mpi_pmpi_bounds " MCC_VERSION "\n");
    for (int i = 1; i < argc; ++i) {
        bool found = false;
        for (int k = 0; k < kParted; ++k) {
            if (strcmp(argv[i], kParts[k]) != 0) continue;
            wanted[k] = found = true;
        }
        known = known && found;
    }
    for (int k = 0; argc == 1 && k < kParted; ++k) wanted[k] = true;
    const uint64_t even = (uint64_t)world.size * sizeof(int);
    if (!known || r.min_bytes % even != 0 || r.max_bytes % even != 0 || r.min_bytes > 1000)
        leave(world.rank, 2,
              "mpi_pmpi_bounds: no such part, or bounds that its ranks cannot divide; see --help\n");
    if (wanted[0]) cross(&r, kBounced, sizeof(kBounced) / sizeof(kBounced[0]), kKept, &world);
    if (wanted[1] && r.min_bytes > 0)
        cross(&r, kMeasured, sizeof(kMeasured) / sizeof(kMeasured[0]), r.min_bytes, &world);
    if (wanted[1] && r.max_bytes < 1 << 26)
        cross(&r, kMeasured, sizeof(kMeasured) / sizeof(kMeasured[0]), r.max_bytes, &world);
    if (wanted[2]) cross_shapes(&r, &world);
    if (wanted[3]) cross_members(&r, &world);
    if (wanted[4]) cross_depth(&r, &world);
    if (wanted[5]) cross_orphans(&r);
    if (wanted[6]) cross(&r, kUneven, sizeof(kUneven) / sizeof(kUneven[0]), kKept, &world);
    uint64_t all = 0;
    PMPI_Allreduce(&r.failures, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    r.failures = all;
    if (world.rank == 0) report(&r, world.size);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
