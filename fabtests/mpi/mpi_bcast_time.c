// Latency of MPI_Bcast, MPI_Barrier and MPI_Allreduce: from the root's entry (without a root: the last rank's
// entry) to the last rank's end.
//
// There are two methods; the default is `clock` if possible.
//   clock    The ranks run under the same kernel (same boot id) and share a monotonic clock. Every
//            iteration is measured directly.
//   barrier  The root measures broadcast plus barrier, and the median of the barrier alone is subtracted. No
//            clocks are compared. The result is too low for a broadcast that lets early ranks enter the
//            barrier while late ranks still wait.
// Every iteration starts from a barrier. The output has medians and the 10th, 90th and 99th percentile.
//
// With --bare the program runs the operations without measuring or any further work, so that a packet counter
// outside the job (util/cluster/crossings) can subtract a job from a job with more operations.

#include "mpi_support.h"
#include "perf/perf_data.h"

enum { kMaxSizes = 40, kBootIdBytes = 64, kWarmup = 10 };

typedef enum { kBcast, kBarrier, kAllreduce, kOperations } Operation;
static const char* const kNames[kOperations] = {"bcast", "barrier", "allreduce"};

typedef struct {
    uint64_t sizes[kMaxSizes];
    int size_count;
    uint64_t iterations;
    uint64_t byte_budget;  // fewer iterations for large messages
    int root;
    bool rotate;
    bool wanted[kOperations];
    bool bare;
    int method;  // 0 automatic, 1 clock, 2 barrier
    const char* json;
} Options;

// The operands of an operation. An allreduce sums at least one double of `buffer` into `sums`.
typedef struct {
    Operation operation;
    uint64_t bytes;
    void *buffer, *sums;
} Subject;

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

static bool parse_sizes(const char* text, Options* o) {
    char words[512];
    snprintf(words, sizeof(words), "%s", text);
    for (char* word = strtok(words, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->size_count == kMaxSizes || parse_size(word, &o->sizes[o->size_count]) != 0) return false;
        if (o->sizes[o->size_count++] > (UINT64_C(1) << 30)) return false;
    }
    return o->size_count > 0 && strlen(text) < sizeof(words);
}

static bool parse_operations(const char* text, Options* o) {
    while (*text != '\0') {
        const size_t letters = strcspn(text, ",");
        int i = 0;
        while (i < kOperations && (strlen(kNames[i]) != letters || strncmp(kNames[i], text, letters) != 0))
            ++i;
        if (i == kOperations) return false;
        o->wanted[i] = true;
        text += letters + (text[letters] == ',');
    }
    return true;
}

static Options parse(int argc, char** argv, int rank, int size) {
    Options o = {.iterations = 1000, .byte_budget = 256 << 20};
    const char *sizes = "8,1K,64K,1M", *operations = "bcast,barrier", *roots = "0", *method = "";
    uint64_t root = 0;
    const Option options[] = {{"sizes", NULL, 0, 0, &sizes, NULL},
                              {"iterations", &o.iterations, 1, 10000000, NULL, NULL},
                              {"byte-budget", &o.byte_budget, 0, UINT64_MAX, NULL, NULL},
                              {"root", NULL, 0, 0, &roots, NULL},
                              {"operations", NULL, 0, 0, &operations, NULL},
                              {"method", NULL, 0, 0, &method, NULL},
                              {"json", NULL, 0, 0, &o.json, NULL},
                              {"bare", NULL, 0, 0, NULL, &o.bare},
                              {0}};
    parse_options(argc, argv, rank, "mpi_bcast_time", kHelp, options);
    o.rotate = strcmp(roots, "rotate") == 0;
    o.method = strcmp(method, "clock") == 0 ? 1 : strcmp(method, "barrier") == 0 ? 2 : 0;
    if (!parse_sizes(sizes, &o) || !parse_operations(operations, &o) ||
        (o.method == 0 && method[0] != '\0') ||
        (!o.rotate && (parse_size(roots, &root) != 0 || root >= (uint64_t)size)))
        refuse_arguments(rank, "mpi_bcast_time");
    o.root = (int)root;
    return o;
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
        case kOperations:
            break;
    }
}

// Runs `count` iterations. `starts` and `ends` receive the times at which this rank enters and leaves each.
static void run(const Options* o, const Subject* s, uint64_t count, bool then_barrier, double* starts,
                double* ends) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count + kWarmup; ++i) {
        const uint64_t slot = i < kWarmup ? 0 : i - kWarmup;
        MPI_Barrier(MPI_COMM_WORLD);
        starts[slot] = perf_now_us();
        operate(s, root_of(o, slot, size));
        if (then_barrier) MPI_Barrier(MPI_COMM_WORLD);
        ends[slot] = perf_now_us();
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

// Measures an operation; the result is valid on rank 0.
static struct perf_figure measure(const Options* o, const Subject* s, uint64_t count, bool clock,
                                  double barrier_us) {
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
        // without a root, the last rank to enter has the shortest time
        MPI_Reduce(starts, first, (int)count, MPI_DOUBLE, rooted ? MPI_MAX : MPI_MIN, 0, MPI_COMM_WORLD);
    }
    const struct perf_figure figure = perf_sum_up(first, count);
    free(starts), free(ends), free(first), free(last);
    return figure;
}

static void repeat(const Options* o, const Subject* s, uint64_t count) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count; ++i) operate(s, root_of(o, i, size));
}

static void print_row(FILE* json, const char** comma, const char* operation, uint64_t bytes,
                      struct perf_figure f, uint64_t iterations) {
    printf("%-9s %12llu %10.1f %10.1f %10.1f %10.1f %12llu\n", operation, (unsigned long long)bytes, f.p10,
           f.median, f.p90, f.p99, (unsigned long long)iterations);
    fflush(stdout);
    if (json == NULL) return;
    fprintf(
        json,
        "%s{\"operation\": \"%s\", \"bytes\": %llu, \"p10_us\": %.2f, \"median_us\": %.2f, \"p90_us\": %.2f, "
        "\"p99_us\": %.2f, \"iterations\": %llu}",
        *comma, operation, (unsigned long long)bytes, f.p10, f.median, f.p90, f.p99,
        (unsigned long long)iterations);
    *comma = ", ";
}

static uint64_t iterations_of(const Options* o, uint64_t bytes) {
    const uint64_t count = bytes > 0 ? o->byte_budget / bytes : o->iterations;
    return count < 10 && !o->bare ? 10 : count > o->iterations ? o->iterations : count;
}

// Runs an operation with a given size, and measures and prints the latency unless --bare is given.
static void run_one(const Options* o, Operation operation, uint64_t bytes, bool clock,
                    struct perf_figure* barrier, FILE* json, const char** comma) {
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
        const struct perf_figure f = measure(o, &s, count, clock, barrier->median);
        if (operation == kBarrier) {
            *barrier = f;
            MPI_Bcast(&barrier->median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        }
        if (rank == 0 && (operation != kBarrier || o->wanted[kBarrier]))
            print_row(json, comma, kNames[operation], bytes, f, count);
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
    struct perf_figure barrier = {0};
    if (o->wanted[kBarrier] || (!clock && !o->bare)) run_one(o, kBarrier, 0, clock, &barrier, json, &comma);
    for (int i = 0; o->wanted[kBcast] && i < o->size_count; ++i)
        run_one(o, kBcast, o->sizes[i], clock, &barrier, json, &comma);
    for (int i = 0; o->wanted[kAllreduce] && i < o->size_count; ++i)
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
