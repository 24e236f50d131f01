// Latency of MPI_Bcast and MPI_Barrier: from the root's entry (a barrier: the last rank's entry) to the last
// rank's end.
//
// Two ways to measure, chosen by what is possible:
//   clock    all ranks run under one kernel (same boot id): its monotonic clock is theirs, every iteration is
//   measured directly. barrier  otherwise: the root times broadcast plus barrier, and the median of the
//   barrier alone is taken off. No clock is
//            compared with another. It flatters a broadcast that lets early ranks into the barrier while
//            others still wait.
// Every iteration starts from a barrier. Medians are given, with the 10th and 90th percentile.

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
    bool bcast, barrier;
    int method;  // 0 choose, 1 clock, 2 barrier
    const char* json;
} Options;

typedef struct {
    double p10, median, p90;
    uint64_t iterations;
} Figure;

static const char kHelp[] =
    "usage: mpirun ... mpi_bcast_time [options]\n"
    "  --sizes LIST          message sizes, comma-separated, with K, M, G [8,1K,64K,1M]\n"
    "  --iterations N        of each kind [1000]\n"
    "  --byte-budget BYTES   at most this much per size, but at least 10 iterations [256M]\n"
    "  --root N|rotate       the broadcasting rank [0]\n"
    "  --operations LIST     bcast, barrier [bcast,barrier]\n"
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
    o->bcast = o->barrier = false;
    for (char* word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (strcmp(word, "bcast") == 0) {
            o->bcast = true;
        } else if (strcmp(word, "barrier") == 0) {
            o->barrier = true;
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
    static const struct option kLong[] = {{"sizes", 1, NULL, 's'},       {"iterations", 1, NULL, 'i'},
                                          {"byte-budget", 1, NULL, 'b'}, {"root", 1, NULL, 'r'},
                                          {"operations", 1, NULL, 'o'},  {"method", 1, NULL, 'm'},
                                          {"json", 1, NULL, 'j'},        {"help", 0, NULL, 'h'},
                                          {"version", 0, NULL, 'v'},     {NULL, 0, NULL, 0}};
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
    return (Figure){samples[count / 10], samples[count / 2], samples[count - 1 - count / 10], count};
}

static int root_of(const Options* o, uint64_t iteration, int size) {
    return o->rotate ? (int)(iteration % (uint64_t)size) : o->root;
}

// bytes < 0 is the barrier. starts and ends are this rank's entry and exit of every iteration.
static void run(const Options* o, int64_t bytes, char* buffer, uint64_t count, bool then_barrier,
                double* starts, double* ends) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count + kWarmup; ++i) {
        const uint64_t slot = i < kWarmup ? 0 : i - kWarmup;
        MPI_Barrier(MPI_COMM_WORLD);
        starts[slot] = now_us();
        if (bytes >= 0) MPI_Bcast(buffer, (int)bytes, MPI_BYTE, root_of(o, slot, size), MPI_COMM_WORLD);
        if (bytes < 0 || then_barrier) MPI_Barrier(MPI_COMM_WORLD);
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
static Figure measure(const Options* o, int64_t bytes, char* buffer, uint64_t count, bool clock,
                      double barrier_us) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *starts = reals(count), *ends = reals(count), *first = reals(count), *last = reals(count);
    run(o, bytes, buffer, count, !clock && bytes >= 0, starts, ends);
    if (clock) {
        for (uint64_t i = 0; bytes >= 0 && i < count; ++i) {  // only the root's entry counts
            if (rank != root_of(o, i, size)) starts[i] = 0;
        }
        MPI_Reduce(starts, first, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(ends, last, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        for (uint64_t i = 0; i < count; ++i) first[i] = last[i] - first[i];
    } else {
        for (uint64_t i = 0; i < count; ++i) {
            const bool mine = bytes < 0 || rank == root_of(o, i, size);
            starts[i] = mine ? ends[i] - starts[i] - barrier_us : -1e300;
        }
        // of a barrier the shortest stay is that of the last to enter
        MPI_Reduce(starts, first, (int)count, MPI_DOUBLE, bytes < 0 ? MPI_MIN : MPI_MAX, 0, MPI_COMM_WORLD);
    }
    const Figure figure = summarise(first, count);
    free(starts), free(ends), free(first), free(last);
    return figure;
}

static void print_row(FILE* json, const char** comma, const char* operation, uint64_t bytes, Figure f) {
    printf("%-9s %12llu %10.1f %10.1f %10.1f %12llu\n", operation, (unsigned long long)bytes, f.p10, f.median,
           f.p90, (unsigned long long)f.iterations);
    fflush(stdout);
    if (json == NULL) return;
    fprintf(
        json,
        "%s{\"operation\": \"%s\", \"bytes\": %llu, \"p10_us\": %.2f, \"median_us\": %.2f, \"p90_us\": %.2f, "
        "\"iterations\": %llu}",
        *comma, operation, (unsigned long long)bytes, f.p10, f.median, f.p90,
        (unsigned long long)f.iterations);
    *comma = ", ";
}

static void run_all(const Options* o, int rank, int size, FILE* json) {
    const bool clock = o->method == 1 || (o->method == 0 && one_kernel());
    const char* comma = "";
    if (rank == 0) {
        printf("%d ranks, method %s, microseconds\n%-9s %12s %10s %10s %10s %12s\n", size,
               clock ? "clock" : "barrier", "operation", "bytes", "p10", "median", "p90", "iterations");
        if (json)
            fprintf(json, "{\"ranks\": %d, \"method\": \"%s\", \"rows\": [", size,
                    clock ? "clock" : "barrier");
    }
    Figure barrier = {0};
    if (o->barrier || !clock) {
        barrier = measure(o, -1, NULL, o->iterations, clock, 0);
        MPI_Bcast(&barrier.median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0 && o->barrier) print_row(json, &comma, "barrier", 0, barrier);
    }
    for (int i = 0; o->bcast && i < o->size_count; ++i) {
        const uint64_t bytes = o->sizes[i];
        uint64_t count = bytes > 0 ? o->byte_budget / bytes : o->iterations;
        count = count < 10 ? 10 : count > o->iterations ? o->iterations : count;
        char* buffer = calloc(1, bytes + 1);
        if (buffer == NULL) {
            fprintf(stderr, "mpi_bcast_time: no memory for %llu bytes\n", (unsigned long long)bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        const Figure f = measure(o, (int64_t)bytes, buffer, count, clock, barrier.median);
        if (rank == 0) print_row(json, &comma, "bcast", bytes, f);
        free(buffer);
    }
    if (rank == 0 && json) fprintf(json, "]}\n");
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
