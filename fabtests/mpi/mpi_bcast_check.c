// Checks broadcasts of mixed sizes, roots and datatypes, byte by byte on every rank; barriers, by cause and
// effect; and communicators that are created, used and freed in cycles.
//
// A rank compares the received data with a pattern of (operation, offset), and checks that the gaps of
// derived datatypes and the bytes around the message are unchanged. All ranks draw the same broadcasts from
// the seed; the layout may differ between ranks, as MPI allows. Exit status 0 only if all checks passed on
// all ranks.

#include <unistd.h>

#include "mpi_support.h"

enum {
    kGuard = 64,
    kFill = 0xa5,
    kBuckets = 34,
    kBarrierRounds = 10,
    kBarrierTag = 7,
    kBarrierSleepUs = 5000
};

typedef struct {
    uint64_t min, max, count, seed, multiple, cycles;
    int root;  // -1: every rank in turn
    bool contiguous;
    bool fatal;
    const char* json;
} Options;

typedef struct {
    uint64_t operations;
    uint64_t bad;  // (operation, rank) pairs
    double seconds;
} Bucket;

typedef struct {
    MPI_Datatype type;
    int count;
    size_t span;    // bytes from the buffer's address on that a broadcast may write
    size_t block;   // contiguous bytes
    size_t stride;  // distance between blocks
    size_t start;   // of the first block
} Layout;

static const char kHelp[] =
    "usage: mpirun ... mpi_bcast_check [options]\n"
    "  --min BYTES      smallest broadcast [0]           --max BYTES      largest broadcast [1M]\n"
    "  --count N        broadcasts on the world [200]    --seed N         of the drawn operations [1]\n"
    "  --roots all|N    every rank in turn, or rank N [all]\n"
    "  --multiple N     round sizes up to a multiple of N [1]\n"
    "  --cycles N       rounds of split, dup and free [5]\n"
    "  --contiguous     no derived datatypes\n"
    "  --fatal          errors end the job (MPI_ERRORS_ARE_FATAL)\n"
    "  --json FILE      write the result there too\n"
    "  --help, --version\n"
    "Sizes take K, M and G, up to 1G.\n";

static Options parse(int argc, char** argv, int rank, int size) {
    Options o = {.max = 1 << 20, .count = 200, .seed = 1, .multiple = 1, .cycles = 5, .root = -1};
    const uint64_t limit = UINT64_C(1) << 30;
    const char* roots = "all";
    uint64_t root = 0;
    const Option options[] = {{"min", &o.min, 0, limit, NULL, NULL},
                              {"max", &o.max, 0, limit, NULL, NULL},
                              {"count", &o.count, 0, UINT64_MAX, NULL, NULL},
                              {"seed", &o.seed, 0, UINT64_MAX, NULL, NULL},
                              {"roots", NULL, 0, 0, &roots, NULL},
                              {"multiple", &o.multiple, 1, UINT64_MAX, NULL, NULL},
                              {"cycles", &o.cycles, 0, UINT64_MAX, NULL, NULL},
                              {"contiguous", NULL, 0, 0, NULL, &o.contiguous},
                              {"fatal", NULL, 0, 0, NULL, &o.fatal},
                              {"json", NULL, 0, 0, &o.json, NULL},
                              {0}};
    parse_options(argc, argv, rank, "mpi_bcast_check", kHelp, options);
    const bool all = strcmp(roots, "all") == 0;
    if (o.min > o.max || (!all && (parse_size(roots, &root) != 0 || root >= (uint64_t)size)))
        refuse_arguments(rank, "mpi_bcast_check");
    if (!all) o.root = (int)root;
    return o;
}

static uint64_t draw_size(const Options* o, uint64_t* random) {
    // uniform in the logarithm; otherwise nearly every broadcast would be of the largest size class
    uint64_t low = o->min, high = o->max;
    int low_bit = low == 0 ? -1 : 63 - __builtin_clzll(low);
    int high_bit = high == 0 ? -1 : 63 - __builtin_clzll(high);
    const int bit = low_bit + (int)random_between(random, 0, (uint64_t)(high_bit - low_bit));
    const uint64_t from = bit < 0 ? 0 : UINT64_C(1) << bit;
    const uint64_t to = bit < 0 ? 0 : (from << 1) - 1;
    uint64_t size = random_between(random, from > low ? from : low, to < high ? to : high);
    return (size + o->multiple - 1) / o->multiple * o->multiple;
}

static Layout contiguous_layout(uint64_t bytes) {
    return (Layout){MPI_BYTE, (int)bytes, bytes, bytes, bytes, 0};
}

// Draws a layout of blocks of bytes with gaps; a shorter block has the remainder.
static Layout block_layout(uint64_t bytes, uint64_t* random) {
    const size_t block = (size_t)random_between(random, 1, bytes < 300 ? bytes : 300 + bytes / 1024);
    const size_t gap = (size_t)random_between(random, 1, 17);
    const size_t whole = bytes / block, rest = bytes % block, start = (size_t)random_between(random, 0, 9);
    MPI_Datatype vector, combined;
    MPI_Type_create_hvector((int)whole, (int)block, (MPI_Aint)(block + gap), MPI_BYTE, &vector);
    int lengths[2] = {1, (int)rest};
    MPI_Aint places[2] = {(MPI_Aint)start, (MPI_Aint)(start + whole * (block + gap))};
    MPI_Datatype types[2] = {vector, MPI_BYTE};
    MPI_Type_create_struct(rest > 0 ? 2 : 1, lengths, places, types, &combined);
    MPI_Type_commit(&combined);
    MPI_Type_free(&vector);
    return (Layout){combined, 1, start + (whole + 1) * (block + gap), block, block + gap, start};
}

// Draws a layout of every double, or of every second or third: packing must not stop inside an element.
static Layout double_layout(uint64_t bytes, uint64_t* random) {
    const size_t step = 8 * (size_t)random_between(random, 1, 3);
    MPI_Datatype resized;
    MPI_Type_create_resized(MPI_DOUBLE, 0, (MPI_Aint)step, &resized);
    MPI_Type_commit(&resized);
    return (Layout){resized, (int)(bytes / 8), bytes / 8 * step + 8, 8, step, 0};
}

static bool verify(const uint8_t* memory, size_t total, const Layout* l, uint64_t bytes, uint64_t operation) {
    uint64_t offset = 0;
    bool good = true;
    for (size_t at = 0; at < total && good; ++at) {
        bool data = false;
        if (at >= kGuard + l->start && offset < bytes) {
            const size_t inside = at - kGuard - l->start;
            data = inside % l->stride < l->block;
        }
        good = memory[at] == (data ? pattern_byte(operation, offset) : kFill);
        if (data) ++offset;
    }
    return good && offset == bytes;
}

static void fill(uint8_t* memory, const Layout* l, uint64_t bytes, uint64_t operation) {
    for (uint64_t offset = 0; offset < bytes; ++offset) {
        memory[kGuard + l->start + offset / l->block * l->stride + offset % l->block] =
            pattern_byte(operation, offset);
    }
}

// Runs one verified broadcast. Returns 1 if the result on this rank is wrong.
static uint64_t broadcast_once(MPI_Comm comm, uint64_t bytes, int root, int kind, uint64_t operation,
                               uint64_t* own_random, double* seconds) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    Layout l = contiguous_layout(bytes);
    const bool doubles = kind == 2 && bytes % 8 == 0 && bytes > 0;
    if (doubles) l = double_layout(bytes, own_random);
    if (kind == 1 && bytes > 0 && next_random(own_random) % 3 != 0) l = block_layout(bytes, own_random);
    const size_t total = l.span + 2 * kGuard;
    uint8_t* memory = malloc(total);
    if (memory == NULL) {
        fprintf(stderr, "mpi_bcast_check: no memory for %zu bytes\n", total);
        MPI_Abort(MPI_COMM_WORLD, 1);
        return 1;
    }
    memset(memory, kFill, total);
    if (rank == root) fill(memory, &l, bytes, operation);
    const double start = MPI_Wtime();
    const int rc = MPI_Bcast(memory + kGuard, l.count, l.type, root, comm);
    *seconds += MPI_Wtime() - start;
    const bool good = rc == MPI_SUCCESS && verify(memory, total, &l, bytes, operation);
    if (!good) {
        fprintf(stderr, "rank %d: operation %llu: %llu bytes from root %d, layout %d: %s\n", rank,
                (unsigned long long)operation, (unsigned long long)bytes, root, kind,
                rc == MPI_SUCCESS ? "wrong bytes" : "MPI_Bcast returned an error");
    }
    if (l.type != MPI_BYTE) MPI_Type_free(&l.type);
    free(memory);
    return good ? 0 : 1;
}

static int bucket_of(uint64_t bytes) {
    return bytes == 0 ? 0 : 64 - __builtin_clzll(bytes);
}

static uint64_t run_broadcasts(const Options* o, MPI_Comm comm, uint64_t count, uint64_t stream,
                               Bucket* buckets) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    uint64_t random = o->seed * UINT64_C(1000003) + stream;
    uint64_t own_random = random + (uint64_t)rank * 77 + 1;
    uint64_t bad = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t bytes = draw_size(o, &random);
        const int kind = o->contiguous ? 0 : (int)random_between(&random, 0, 3);
        const int root = o->root >= 0 && o->root < size ? o->root : (int)(i % (uint64_t)size);
        Bucket* b = &buckets[bucket_of(bytes)];
        const uint64_t wrong =
            broadcast_once(comm, bytes, root, kind, stream * 1000000 + i, &own_random, &b->seconds);
        ++b->operations;
        b->bad += wrong;
        bad += wrong;
    }
    return bad;
}

// After the barrier, each rank sends a message to the late rank. If a message arrives before the late rank
// enters, the barrier leaked.
static uint64_t check_barrier(MPI_Comm comm, uint64_t seed) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    uint64_t random = seed, bad = 0;
    for (int round = 0; round < kBarrierRounds && size > 1; ++round) {
        const int late = (int)(next_random(&random) % (uint64_t)size);
        if (rank != late) {
            MPI_Barrier(comm);
            MPI_Send(NULL, 0, MPI_BYTE, late, kBarrierTag, comm);
            continue;
        }
        usleep(kBarrierSleepUs);
        for (int probe = 0; probe < 100; ++probe) {
            int leaked = 0;
            MPI_Iprobe(MPI_ANY_SOURCE, kBarrierTag, comm, &leaked, MPI_STATUS_IGNORE);
            if (leaked) {
                fprintf(stderr, "rank %d: a member left the barrier before this one entered\n", rank);
                ++bad;
                break;
            }
        }
        MPI_Barrier(comm);
        for (int i = 0; i < size - 1; ++i) {
            MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, kBarrierTag, comm, MPI_STATUS_IGNORE);
        }
    }
    return bad;
}

static uint64_t run_cycles(const Options* o, Bucket* buckets) {
    uint64_t bad = 0;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t cycle = 0; cycle < o->cycles; ++cycle) {
        MPI_Comm parts[3];
        MPI_Comm_dup(MPI_COMM_WORLD, &parts[0]);
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &parts[1]);  // reverse order of ranks
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parts[2]);
        for (int i = 0; i < 3; ++i) {  // separately, then mixed
            bad += run_broadcasts(o, parts[i], 4, 10 + cycle * 10 + (uint64_t)i, buckets);
        }
        bad += check_barrier(parts[1], o->seed + cycle);
        for (int i = 2; i >= 0; --i)
            bad += run_broadcasts(o, parts[i], 2, 20 + cycle * 10 + (uint64_t)i, buckets);
        for (int i = 0; i < 3; ++i) MPI_Comm_free(&parts[i]);
    }
    return bad;
}

static void report(const Options* o, int size, const Bucket* all, uint64_t bad, uint64_t barrier_bad) {
    FILE* json = o->json != NULL ? fopen(o->json, "w") : NULL;
    if (o->json != NULL && json == NULL) {
        fprintf(stderr, "mpi_bcast_check: %s: %s\n", o->json, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    printf("%12s %12s %8s %14s\n", "up to bytes", "broadcasts", "bad", "mean us/rank");
    if (json)
        fprintf(json, "{\"ranks\": %d, \"seed\": %llu, \"sizes\": [", size, (unsigned long long)o->seed);
    const char* comma = "";
    for (int i = 0; i < kBuckets; ++i) {
        if (all[i].operations == 0) continue;
        const unsigned long long limit = i == 0 ? 0 : (1ULL << i) - 1;
        const double mean = all[i].seconds / (double)all[i].operations * 1e6;  // both are sums over ranks
        const unsigned long long operations = all[i].operations;
        printf("%12llu %12llu %8llu %14.1f\n", limit, operations, (unsigned long long)all[i].bad, mean);
        if (json) {
            fprintf(json, "%s{\"up_to\": %llu, \"rank_broadcasts\": %llu, \"bad\": %llu, \"mean_us\": %.1f}",
                    comma, limit, operations, (unsigned long long)all[i].bad, mean);
        }
        comma = ", ";
    }
    printf("%d ranks, seed %llu: %llu bad broadcasts, %llu bad barriers: %s\n", size,
           (unsigned long long)o->seed, (unsigned long long)bad, (unsigned long long)barrier_bad,
           bad + barrier_bad == 0 ? "ok" : "FAILED");
    if (json) {
        fprintf(json, "], \"bad\": %llu, \"bad_barriers\": %llu, \"ok\": %s}\n", (unsigned long long)bad,
                (unsigned long long)barrier_bad, bad + barrier_bad == 0 ? "true" : "false");
        if (fclose(json) != 0) fprintf(stderr, "mpi_bcast_check: %s: %s\n", o->json, strerror(errno));
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options o = parse(argc, argv, rank, size);
    if (!o.fatal) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    Bucket mine[kBuckets] = {0}, all[kBuckets] = {0};
    uint64_t bad[2] = {0, 0}, all_bad[2] = {0, 0};
    bad[0] += run_broadcasts(&o, MPI_COMM_WORLD, o.count, 1, mine);
    bad[1] += check_barrier(MPI_COMM_WORLD, o.seed);
    bad[0] += run_cycles(&o, mine);

    MPI_Allreduce(bad, all_bad, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < kBuckets; ++i) {
        MPI_Reduce(&mine[i].operations, &all[i].operations, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce(&mine[i].seconds, &all[i].seconds, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) report(&o, size, all, all_bad[0], all_bad[1]);
    MPI_Finalize();
    return all_bad[0] + all_bad[1] == 0 ? 0 : 1;
}
