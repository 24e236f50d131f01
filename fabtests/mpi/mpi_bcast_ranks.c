// Measures a verified broadcast rank by rank: from the root's entry to the end on each rank.
//
// mpi_bcast_time measures only the last rank. The cost of a lost datagram shows in the tail over all ranks
// and operations, and a repair policy must also deliver the right bytes. So every broadcast is verified on
// every rank, outside the measured time. All ranks must run under one kernel, since they compare its
// monotonic clock. Every operation starts from a barrier.

#include "mpi_support.h"
#include "perf/perf_data.h"

typedef struct {
    uint64_t bytes, count, warmup;
    int root;  // -1: every rank in turn
    const char* json;
} Options;

typedef struct {
    struct perf_figure of;
    double mean;
} Figure;

static const char kHelp[] =
    "usage: mpirun ... mpi_bcast_ranks [options]\n"
    "  --size BYTES     of every broadcast, with K or M [8]\n"
    "  --count N        broadcasts that are measured [300]\n"
    "  --warmup N       before them, checked but not measured [10]\n"
    "  --root N|rotate  the broadcasting rank [rotate]\n"
    "  --json FILE      write the result there too\n"
    "  --help, --version\n";

static Options parse(int argc, char** argv, int rank, int size) {
    Options o = {.bytes = 8, .count = 300, .warmup = 10, .root = -1};
    const char* roots = "rotate";
    uint64_t root = 0;
    const Option options[] = {{"size", &o.bytes, 0, UINT64_C(1) << 28, NULL, NULL},
                              {"count", &o.count, 1, 1000000, NULL, NULL},
                              {"warmup", &o.warmup, 0, 1000000, NULL, NULL},
                              {"root", NULL, 0, 0, &roots, NULL},
                              {"json", NULL, 0, 0, &o.json, NULL},
                              {0}};
    parse_options(argc, argv, rank, "mpi_bcast_ranks", kHelp, options);
    if (strcmp(roots, "rotate") == 0) return o;
    if (parse_size(roots, &root) != 0 || root >= (uint64_t)size) refuse_arguments(rank, "mpi_bcast_ranks");
    o.root = (int)root;
    return o;
}

static void* memory(size_t bytes) {
    void* p = calloc(1, bytes);
    if (p == NULL) {
        fprintf(stderr, "mpi_bcast_ranks: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

// Runs the broadcasts and returns the number of wrong broadcasts on this rank. starts[] is 0 except where
// this rank was root.
static uint64_t run(const Options* o, int rank, int size, double* starts, double* ends) {
    uint8_t* buffer = memory(o->bytes + 1);
    uint64_t bad = 0;
    for (uint64_t i = 0; i < o->warmup + o->count; ++i) {
        const int root = o->root >= 0 ? o->root : (int)(i % (uint64_t)size);
        for (uint64_t b = 0; b < o->bytes; ++b) buffer[b] = rank == root ? pattern_byte(i, b) : 0xa5;
        buffer[o->bytes] = 0xa5;
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = perf_now_us();
        const int rc = MPI_Bcast(buffer, (int)o->bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        const double end = perf_now_us();
        bool good = rc == MPI_SUCCESS && buffer[o->bytes] == 0xa5;
        for (uint64_t b = 0; good && b < o->bytes; ++b) good = buffer[b] == pattern_byte(i, b);
        if (!good) {
            ++bad;
            fprintf(stderr, "rank %d: broadcast %llu from root %d: %s\n", rank, (unsigned long long)i, root,
                    rc == MPI_SUCCESS ? "wrong bytes" : "MPI_Bcast returned an error");
        }
        if (i < o->warmup) continue;
        starts[i - o->warmup] = rank == root ? start : 0;
        ends[i - o->warmup] = end;
    }
    free(buffer);
    return bad;
}

static Figure summarise(double* samples, uint64_t count) {
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) sum += samples[i];
    return (Figure){perf_sum_up(samples, count), sum / (double)count};
}

static void show(FILE* json, const char* name, const char* key, Figure f) {
    printf("%-10s %10.1f %10.1f %10.1f %10.1f\n", name, f.of.median, f.of.p90, f.of.p99, f.mean);
    if (json == NULL) return;
    fprintf(json, ", \"%s\": {\"median_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, \"mean_us\": %.2f}",
            key, f.of.median, f.of.p90, f.of.p99, f.mean);
}

// Prints the result on rank 0. `all` holds the times of rank 0, then the times of rank 1 and so on. The
// root's own time is left out, since no rank waits for the root.
static void report(const Options* o, int size, const double* starts, double* all, uint64_t bad) {
    double* last = memory(o->count * sizeof(double));
    uint64_t samples = 0;
    for (uint64_t i = 0; i < o->count; ++i) {
        for (int r = 0; r < size; ++r) {
            const double t = all[(uint64_t)r * o->count + i] - starts[i];
            if (t > last[i]) last[i] = t;
        }
    }
    for (int r = 0; r < size; ++r) {
        for (uint64_t i = 0; i < o->count; ++i) {
            const int root = o->root >= 0 ? o->root : (int)((i + o->warmup) % (uint64_t)size);
            const double t = all[(uint64_t)r * o->count + i] - starts[i];
            if (r != root) all[samples++] = t;
        }
    }
    FILE* json = o->json != NULL ? fopen(o->json, "w") : NULL;
    if (o->json != NULL && json == NULL) {
        fprintf(stderr, "mpi_bcast_ranks: %s: %s\n", o->json, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    printf("%d ranks, %llu broadcasts of %llu bytes, microseconds\n%-10s %10s %10s %10s %10s\n", size,
           (unsigned long long)o->count, (unsigned long long)o->bytes, "", "median", "p90", "p99", "mean");
    if (json != NULL) {
        fprintf(json, "{\"ranks\": %d, \"bytes\": %llu, \"count\": %llu, \"warmup\": %llu, \"bad\": %llu",
                size, (unsigned long long)o->bytes, (unsigned long long)o->count,
                (unsigned long long)o->warmup, (unsigned long long)bad);
    }
    if (samples > 0) show(json, "receivers", "receivers", summarise(all, samples));
    show(json, "last rank", "last", summarise(last, o->count));
    printf("%llu bad broadcasts: %s\n", (unsigned long long)bad, bad == 0 ? "ok" : "FAILED");
    if (json != NULL && (fputs("}\n", json) < 0 || fclose(json) != 0))
        fprintf(stderr, "mpi_bcast_ranks: %s: %s\n", o->json, strerror(errno));
    free(last);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const Options o = parse(argc, argv, rank, size);
    double* starts = memory(o.count * sizeof(double));
    double* ends = memory(o.count * sizeof(double));
    double* root_starts = memory(o.count * sizeof(double));
    double* all = rank == 0 ? memory((size_t)size * o.count * sizeof(double)) : NULL;

    uint64_t bad = run(&o, rank, size, starts, ends), all_bad = 0;
    MPI_Reduce(starts, root_starts, (int)o.count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Gather(ends, (int)o.count, MPI_DOUBLE, all, (int)o.count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&bad, &all_bad, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) report(&o, size, root_starts, all, all_bad);
    free(starts), free(ends), free(root_starts), free(all);
    MPI_Finalize();
    return all_bad == 0 ? 0 : 1;
}
