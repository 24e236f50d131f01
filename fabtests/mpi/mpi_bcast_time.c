// Latency of MPI_Bcast, MPI_Barrier and MPI_Allreduce: from the root's entry (without a root: the last rank's
// entry) to the last rank's end.
//
// Two ways to measure, chosen by what is possible:
//   clock    all ranks run under one kernel (same boot id): its monotonic clock is theirs, every iteration is
//   measured directly. barrier  otherwise: the root times broadcast plus barrier, and the median of the
//   barrier alone is taken off. No clock is
//            compared with another. It flatters a broadcast that lets early ranks into the barrier while
//            others still wait.
// Every iteration starts from a barrier. Medians are given, with the 10th, 90th and 99th percentile.
//
// With --bare nothing is timed and nothing happens between the operations, so that who counts packets outside
// (util/cluster/crossings) can take one job from another with more operations.

#include <getopt.h>
#include <stdbool.h>
#include <time.h>

#include "mpi_support.h"

enum { kMaxSizes = 40, kBootIdBytes = 64, kWarmup = 10 };

typedef struct {
    uint64_t sizes[kMaxSizes];
    int size_count;
    uint64_t iterations;
    uint64_t byte_budget;  // fewer iterations for large messages
    int root;
    bool rotate;
    bool bcast, barrier, allreduce;
    bool bare;
    int method;  // 0 choose, 1 clock, 2 barrier
    const char* json;
} Options;

typedef enum { kBcast, kBarrier, kAllreduce } Operation;
static const char* const kNames[] = {"bcast", "barrier", "allreduce"};

// What an operation works on. An allreduce sums doubles, one at least, of `buffer` into `sums`.
typedef struct {
    Operation operation;
    uint64_t bytes;
    void *buffer, *sums;
} Subject;

typedef struct {
    double p10, median, p90, p99;
    uint64_t iterations;
} Figure;

static const char kHelp[] =
    "usage: mpirun ... mpi_bcast_time [options]\n"
    "  --sizes LIST          message sizes, comma-separated, with K, M, G [8,1K,64K,1M]\n"
    "  --iterations N        of each kind [1000]\n"
    "  --byte-budget BYTES   at most this much per size, but at least 10 iterations [256M]\n"
    "  --root N|rotate       the broadcasting rank [0]\n"
    "  --operations LIST     bcast, barrier, allreduce (sums of doubles) [bcast,barrier]\n"
    "  --bare                do the operations and nothing else, for counting packets outside\n"
    "  --method clock|barrier  how to measure [clock where all ranks share a kernel]\n"
    "  --json FILE           write the result there too\n"
    "  --help, --version\n";

static int parse_sizes(char* text, Options* o) {
    o->size_count = 0;
    for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->size_count == kMaxSizes || parse_size(word, &o->sizes[o->size_count]) != 0) return -1;
        if (o->sizes[o->size_count++] > (UINT64_C(1) << 30)) return -1;
    }
    return o->size_count > 0 ? 0 : -1;
}

static int parse_operations(char* text, Options* o) {
    o->bcast = o->barrier = o->allreduce = false;
    for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (strcmp(word, "bcast") == 0) {
            o->bcast = true;
        } else if (strcmp(word, "barrier") == 0) {
            o->barrier = true;
        } else if (strcmp(word, "allreduce") == 0) {
            o->allreduce = true;
        } else {
            return -1;
        }
    }
    return 0;
}

static int parse_root(const char* text, int size, Options* o) {
    uint64_t root;
    if (strcmp(text, "rotate") == 0) {
        o->rotate = true;
        return 0;
    }
    if (parse_size(text, &root) != 0 || root >= (uint64_t)size) return -1;
    o->root = (int)root;
    return 0;
}

static Options parse(int argc, char** argv, int rank, int size) {
    Options o = {.sizes = {8, 1 << 10, 64 << 10, 1 << 20},
                 .size_count = 4,
                 .iterations = 1000,
                 .byte_budget = 256 << 20,
                 .bcast = true,
                 .barrier = true};
    static const struct option kLong[] = {{"sizes", 1, NULL, 's'},
                                          {"iterations", 1, NULL, 'i'},
                                          {"byte-budget", 1, NULL, 'b'},
                                          {"root", 1, NULL, 'r'},
                                          {"operations", 1, NULL, 'o'},
                                          {"method", 1, NULL, 'm'},
                                          {"json", 1, NULL, 'j'},
                                          {"help", 0, NULL, 'h'},
                                          {"bare", 0, NULL, 'B'},
                                          {"version", 0, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    int bad = 0;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        switch (c) {
            case 's':
                bad |= parse_sizes(optarg, &o);
                break;
            case 'i':
                bad |= parse_size(optarg, &o.iterations) || o.iterations == 0 || o.iterations > 10000000;
                break;
            case 'b':
                bad |= parse_size(optarg, &o.byte_budget);
                break;
            case 'r':
                bad |= parse_root(optarg, size, &o);
                break;
            case 'o':
                bad |= parse_operations(optarg, &o);
                break;
            case 'm':
                o.method = strcmp(optarg, "clock") == 0 ? 1 : strcmp(optarg, "barrier") == 0 ? 2 : -1;
                bad |= o.method < 0;
                break;
            case 'B':
                o.bare = true;
                break;
            case 'j':
                o.json = optarg;
                break;
            case 'h':
                leave(rank, 0, kHelp);
                break;
            case 'v':
                leave(rank, 0, "mpi_bcast_time " MCC_VERSION "\n");
                break;
            default:
                bad = 1;
        }
    }
    if (bad || optind != argc) leave(rank, 2, "mpi_bcast_time: bad arguments, see --help\n");
    return o;
}

static double now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static bool one_kernel(void) {
    char mine[kBootIdBytes] = "", first[kBootIdBytes];
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fgets(mine, sizeof(mine), file) == NULL) mine[0] = '\0';
        fclose(file);
    }
    memcpy(first, mine, sizeof(first));
    MPI_Bcast(first, kBootIdBytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    int same = mine[0] != '\0' && memcmp(first, mine, sizeof(first)) == 0, all = 0;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all != 0;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static Figure summarise(double* samples, uint64_t count) {
    qsort(samples, count, sizeof(double), by_value);
    return (Figure){samples[count / 10], samples[count / 2], samples[count - 1 - count / 10],
                    samples[count - 1 - count / 100], count};
}

static int root_of(const Options* o, uint64_t iteration, int size) {
    return o->rotate ? (int)(iteration % (uint64_t)size) : o->root;
}

static void operate(const Subject* s, int root) {
    switch (s->operation) {
        case kBcast:
            MPI_Bcast(s->buffer, (int)s->bytes, MPI_BYTE, root, MPI_COMM_WORLD);
            break;
        case kBarrier:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case kAllreduce:
            MPI_Allreduce(s->buffer, s->sums, (int)((s->bytes + 7) / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            break;
    }
}

// starts and ends are this rank's entry and exit of every iteration.
static void run(const Options* o, const Subject* s, uint64_t count, bool then_barrier, double* starts,
                double* ends) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count + kWarmup; ++i) {
        const uint64_t slot = i < kWarmup ? 0 : i - kWarmup;
        MPI_Barrier(MPI_COMM_WORLD);
        starts[slot] = now_us();
        operate(s, root_of(o, slot, size));
        if (then_barrier) MPI_Barrier(MPI_COMM_WORLD);
        ends[slot] = now_us();
    }
}

static double* reals(uint64_t count) {
    double* p = calloc(count, sizeof(double));
    if (p == NULL) {
        fprintf(stderr, "mpi_bcast_time: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

// The figure is valid on rank 0.
static Figure measure(const Options* o, const Subject* s, uint64_t count, bool clock, double barrier_us) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const bool rooted = s->operation == kBcast;
    double *starts = reals(count), *ends = reals(count), *first = reals(count), *last = reals(count);
    run(o, s, count, !clock && rooted, starts, ends);
    if (clock) {
        for (uint64_t i = 0; rooted && i < count; ++i) {  // only the root's entry counts
            if (rank != root_of(o, i, size)) starts[i] = 0;
        }
        MPI_Reduce(starts, first, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(ends, last, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        for (uint64_t i = 0; i < count; ++i) first[i] = last[i] - first[i];
    } else {
        for (uint64_t i = 0; i < count; ++i) {
            const bool mine = !rooted || rank == root_of(o, i, size);
            starts[i] = mine ? ends[i] - starts[i] - (rooted ? barrier_us : 0) : -1e300;
        }
        // without a root the shortest stay is that of the last to enter
        MPI_Reduce(starts, first, (int)count, MPI_DOUBLE, rooted ? MPI_MAX : MPI_MIN, 0, MPI_COMM_WORLD);
    }
    const Figure figure = summarise(first, count);
    free(starts), free(ends), free(first), free(last);
    return figure;
}

static void repeat(const Options* o, const Subject* s, uint64_t count) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count; ++i) operate(s, root_of(o, i, size));
}

static void print_row(FILE* json, const char** comma, const char* operation, uint64_t bytes, Figure f) {
    printf("%-9s %12llu %10.1f %10.1f %10.1f %10.1f %12llu\n", operation, (unsigned long long)bytes, f.p10,
           f.median, f.p90, f.p99, (unsigned long long)f.iterations);
    fflush(stdout);
    if (json == NULL) return;
    fprintf(
        json,
        "%s{\"operation\": \"%s\", \"bytes\": %llu, \"p10_us\": %.2f, \"median_us\": %.2f, \"p90_us\": %.2f, "
        "\"p99_us\": %.2f, \"iterations\": %llu}",
        *comma, operation, (unsigned long long)bytes, f.p10, f.median, f.p90, f.p99,
        (unsigned long long)f.iterations);
    *comma = ", ";
}

static uint64_t iterations_of(const Options* o, uint64_t bytes) {
    const uint64_t count = bytes > 0 ? o->byte_budget / bytes : o->iterations;
    return count < 10 && !o->bare ? 10 : count > o->iterations ? o->iterations : count;
}

// One operation at one size, measured and printed, or merely done.
static void run_one(const Options* o, Operation operation, uint64_t bytes, bool clock, Figure* barrier,
                    FILE* json, const char** comma) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Subject s = {operation, bytes, calloc(1, bytes + 8), calloc(1, bytes + 8)};
    if (s.buffer == NULL || s.sums == NULL) {
        fprintf(stderr, "mpi_bcast_time: no memory for %llu bytes\n", (unsigned long long)bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    const uint64_t count = iterations_of(o, bytes);
    if (o->bare) {
        repeat(o, &s, count);
    } else {
        const Figure f = measure(o, &s, count, clock, barrier->median);
        if (operation == kBarrier) {
            *barrier = f;
            MPI_Bcast(&barrier->median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        }
        if (rank == 0 && (operation != kBarrier || o->barrier))
            print_row(json, comma, kNames[operation], bytes, f);
    }
    free(s.buffer), free(s.sums);
}

static void run_all(const Options* o, int rank, int size, FILE* json) {
    const bool clock = o->method == 1 || (o->method == 0 && !o->bare && one_kernel());
    const char* comma = "";
    if (rank == 0 && !o->bare) {
        printf("%d ranks, method %s, microseconds\n%-9s %12s %10s %10s %10s %10s %12s\n", size,
               clock ? "clock" : "barrier", "operation", "bytes", "p10", "median", "p90", "p99",
               "iterations");
        if (json)
            fprintf(json, "{\"ranks\": %d, \"method\": \"%s\", \"rows\": [", size,
                    clock ? "clock" : "barrier");
    }
    Figure barrier = {0};
    if (o->barrier || (!clock && !o->bare)) run_one(o, kBarrier, 0, clock, &barrier, json, &comma);
    for (int i = 0; o->bcast && i < o->size_count; ++i)
        run_one(o, kBcast, o->sizes[i], clock, &barrier, json, &comma);
    for (int i = 0; o->allreduce && i < o->size_count; ++i)
        run_one(o, kAllreduce, o->sizes[i], clock, &barrier, json, &comma);
    if (rank == 0 && json) fprintf(json, o->bare ? "{}\n" : "]}\n");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options o = parse(argc, argv, rank, size);
    FILE* json = NULL;
    if (rank == 0 && o.json != NULL && (json = fopen(o.json, "w")) == NULL) {
        fprintf(stderr, "mpi_bcast_time: %s: %s\n", o.json, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run_all(&o, rank, size, json);
    if (json != NULL && fclose(json) != 0)
        fprintf(stderr, "mpi_bcast_time: %s: %s\n", o.json, strerror(errno));
    MPI_Finalize();
    return 0;
}
