// How long collectives take on one host: one stack's side of a comparison of several MPIs.
//
// Why it exists: stacks can only be compared fairly when they take turns within one run, on the same code and
// the same clock. So this program compiles with any MPI, and with --serve it stays alive between its turns:
// each rank sleeps in read() on a pipe of its own, where no MPI can spin, and measures when it is told to.
//
// What is measured: the last rank's end minus the start, which is the root's entry for bcast and the last
// rank's entry for all others. All ranks must run under one kernel, whose monotonic clock they compare. Every
// operation starts from an MPI_Barrier, its buffers are new every time, and all results are verified, outside
// the timed part. How many there are follows from the time allowed; rank 0 says how many come next. The first
// few do not count.

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "mpi_support.h"

enum {
    kMaxCells = 64,
    kMaxSamples = 20000,
    kWarmup = 4,
    kLeastSamples = 3,
    kGuardBytes = 8,
    kLineBytes = 128
};

typedef enum { kBcast, kBarrier, kAllreduce, kAllgather, kReduce, kOperations } Operation;
static const char* const kNames[kOperations] = {"bcast", "barrier", "allreduce", "allgather", "reduce"};

typedef struct {
    Operation operation;
    uint64_t bytes;  // of each rank's contribution
    double seconds;
} Cell;

typedef struct {
    double p10, median, p90;
    uint64_t samples, bad;
} Figure;

typedef struct {
    int rank, size, root;
    uint8_t *send, *receive;  // of the cell under way
    uint64_t receive_bytes;
    uint64_t serial;  // no two operations have the same data
    double *starts, *ends;
} Bench;

typedef struct {
    Cell cells[kMaxCells];
    int cell_count, root;
    bool json;
    const char* serve;
} Options;

static const char kHelp[] =
    "usage: mpirun ... mpi_coll_time [options]\n"
    "  --operations LIST  bcast, barrier, allreduce, allgather, reduce [all]\n"
    "  --sizes LIST       bytes of each rank's contribution, with K or M [8,64K]\n"
    "  --seconds S        for each of them [1]\n"
    "  --root N           of bcast and reduce [0]\n"
    "  --json             lines of JSON instead of a table\n"
    "  --serve DIR        instead: rank R reads lines 'OPERATION BYTES SECONDS' from the pipe DIR/R\n"
    "                     and rank 0 prints the results as lines of JSON\n"
    "  --help, --version\n"
    "Reductions add doubles, so their sizes are multiples of 8.\n";

static double now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void* memory(uint64_t bytes) {
    void* p = NULL;
    if (posix_memalign(&p, 4096, bytes) != 0) {
        fprintf(stderr, "mpi_coll_time: no memory for %llu bytes\n", (unsigned long long)bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 0, bytes);
    return p;
}

static bool reduces(Operation o) {
    return o == kAllreduce || o == kReduce;
}

// The error, or NULL.
static const char* set_cell(Cell* cell, const char* operation, uint64_t bytes, double seconds) {
    int found = 0;
    while (found < kOperations && strcmp(operation, kNames[found]) != 0) ++found;
    if (found == kOperations) return "--operations: give bcast, barrier, allreduce, allgather or reduce";
    *cell = (Cell){(Operation)found, found == kBarrier ? 0 : bytes, seconds};
    if (bytes > UINT64_C(1) << 26) return "--sizes: give at most 64M";
    if (reduces(cell->operation) && cell->bytes % 8 != 0) return "--sizes: reductions need multiples of 8";
    if (!(seconds > 0 && seconds <= 600)) return "--seconds: give more than 0, at most 600";
    return NULL;
}

// All operations at all sizes, the barrier once. The error, or NULL.
static const char* set_cells(Options* o, char* operations, const char* sizes, double seconds) {
    char* rest;
    for (char* word = strtok_r(operations, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char list[256], *left;
        if (snprintf(list, sizeof(list), "%s", sizes) >= (int)sizeof(list)) return "--sizes: too many";
        for (char* size = strtok_r(list, ",", &left); size != NULL; size = strtok_r(NULL, ",", &left)) {
            uint64_t bytes;
            if (parse_size(size, &bytes) != 0) return "--sizes: give bytes, comma-separated, with K or M";
            if (o->cell_count == kMaxCells) return "too many operations and sizes";
            const char* error = set_cell(&o->cells[o->cell_count++], word, bytes, seconds);
            if (error != NULL) return error;
            if (strcmp(word, kNames[kBarrier]) == 0) break;
        }
    }
    return NULL;
}

static Options parse(int argc, char** argv, int rank, int size) {
    static const struct option kLong[] = {
        {"operations", 1, NULL, 'o'}, {"sizes", 1, NULL, 's'},   {"seconds", 1, NULL, 't'},
        {"root", 1, NULL, 'r'},       {"json", 0, NULL, 'j'},    {"serve", 1, NULL, 'S'},
        {"help", 0, NULL, 'h'},       {"version", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    Options o = {.cell_count = 0};
    char operations[256] = "bcast,barrier,allreduce,allgather,reduce", *end;
    const char *sizes = "8,64K", *error = NULL;
    double seconds = 1;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        switch (c) {
            case 'o':
                snprintf(operations, sizeof(operations), "%s", optarg);
                break;
            case 's':
                sizes = optarg;
                break;
            case 't':
                seconds = strtod(optarg, &end);
                if (end == optarg || *end != '\0') seconds = 0;
                break;
            case 'r':
                o.root = (int)strtol(optarg, &end, 10);
                if (end == optarg || *end != '\0' || o.root < 0 || o.root >= size)
                    error = "--root: give a rank of the job";
                break;
            case 'j':
                o.json = true;
                break;
            case 'S':
                o.serve = optarg;
                break;
            case 'h':
                leave(rank, 0, kHelp);
                break;
            case 'v':
                leave(rank, 0, "mpi_coll_time " MCC_VERSION "\n");
                break;
            default:
                error = "bad arguments";
        }
    }
    if (error == NULL) error = set_cells(&o, operations, sizes, seconds);
    if (error == NULL && optind != argc) error = "bad arguments";
    if (error != NULL) {
        char text[256];
        snprintf(text, sizeof(text), "mpi_coll_time: %s; see --help\n", error);
        leave(rank, 2, text);
    }
    return o;
}

// What a block of data holds. Words differ in all bytes between operations, ranks and places.
static uint64_t word_at(uint64_t serial, uint64_t place) {
    const uint64_t x = place * UINT64_C(0x9e3779b97f4a7c15) + serial * UINT64_C(0xc2b2ae3d27d4eb4f);
    return x ^ (x >> 29);
}

static void fill(uint8_t* to, uint64_t bytes, uint64_t serial) {
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = word_at(serial, at);
        memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

static bool holds(const uint8_t* data, uint64_t bytes, uint64_t serial) {
    uint64_t wrong = 0;
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = word_at(serial, at);
        wrong |= (uint64_t)(memcmp(data + at, &word, bytes - at < 8 ? bytes - at : 8) != 0);
    }
    return wrong == 0;
}

// Small whole numbers, so that every order of adding gives the same sum.
static double addend(uint64_t serial, uint64_t element) {
    return (double)(((serial + element) & 1023) + 1);
}

static void prepare(Bench* b, const Cell* cell) {
    const uint64_t place = b->serial * (uint64_t)b->size;
    memset(b->receive, 0xa5, b->receive_bytes + kGuardBytes);
    if (cell->operation == kBcast && b->rank == b->root) fill(b->receive, cell->bytes, place);
    if (cell->operation == kAllgather) fill(b->send, cell->bytes, place + (uint64_t)b->rank);
    if (!reduces(cell->operation)) return;
    double* values = (double*)(void*)b->send;
    for (uint64_t e = 0; e < cell->bytes / 8; ++e) values[e] = (double)(b->rank + 1) * addend(b->serial, e);
}

static int perform(Bench* b, const Cell* cell) {
    const int bytes = (int)cell->bytes;
    switch (cell->operation) {
        case kBcast:
            return MPI_Bcast(b->receive, bytes, MPI_BYTE, b->root, MPI_COMM_WORLD);
        case kAllreduce:
            return MPI_Allreduce(b->send, b->receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        case kAllgather:
            return MPI_Allgather(b->send, bytes, MPI_BYTE, b->receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
        case kReduce:
            return MPI_Reduce(b->send, b->receive, bytes / 8, MPI_DOUBLE, MPI_SUM, b->root, MPI_COMM_WORLD);
        default:
            return MPI_Barrier(MPI_COMM_WORLD);
    }
}

static bool verify(const Bench* b, const Cell* cell) {
    static const uint8_t kGuard[kGuardBytes] = {0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5};
    const uint64_t place = b->serial * (uint64_t)b->size;
    if (memcmp(b->receive + b->receive_bytes, kGuard, kGuardBytes) != 0) return false;
    if (cell->operation == kBcast) return holds(b->receive, cell->bytes, place);
    bool good = true;
    for (int r = 0; cell->operation == kAllgather && r < b->size; ++r)
        good &= holds(b->receive + (uint64_t)r * cell->bytes, cell->bytes, place + (uint64_t)r);
    if (cell->operation == kAllreduce || (cell->operation == kReduce && b->rank == b->root)) {
        const double ranks = (double)b->size * (b->size + 1) / 2;
        const double* sums = (const double*)(const void*)b->receive;
        for (uint64_t e = 0; e < cell->bytes / 8; ++e) good &= sums[e] == ranks * addend(b->serial, e);
    }
    return good;
}

// Runs count operations whose times go from slot on; returns how many were wrong here. The last entry counts
// as the start, except of a bcast, whose root does not wait for the others.
static uint64_t run(Bench* b, const Cell* cell, uint64_t slot, uint64_t count) {
    uint64_t bad = 0;
    for (uint64_t i = slot; i < slot + count; ++i) {
        ++b->serial;
        prepare(b, cell);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_us();
        const int code = perform(b, cell);
        b->ends[i] = now_us();
        b->starts[i] = cell->operation == kBcast && b->rank != b->root ? 0 : start;
        // Who is early would else verify, and fill the next buffers, on a core that others still need to end.
        MPI_Barrier(MPI_COMM_WORLD);
        if (code == MPI_SUCCESS && verify(b, cell)) continue;
        if (bad++ == 0)
            fprintf(stderr, "mpi_coll_time: rank %d: %s of %llu bytes: %s\n", b->rank,
                    kNames[cell->operation], (unsigned long long)cell->bytes,
                    code == MPI_SUCCESS ? "wrong data" : "an error");
    }
    return bad;
}

static int by_value(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

// How many operations come next, by rank 0's clock: half of what the time left allows, so that a bad guess
// costs little.
static uint64_t next_count(uint64_t warmed, uint64_t done, double begin_us, double end_us) {
    const double now = now_us(), left = end_us - now;
    if (done == kMaxSamples || (left <= 0 && done >= kLeastSamples)) return 0;
    const double each = (now - begin_us) / (double)(done + warmed), half = left / each / 2;
    if (half < 1) return 1;
    return half < (double)(kMaxSamples - done) ? (uint64_t)half : kMaxSamples - done;
}

// The figure is valid on rank 0.
static Figure measure(Bench* b, const Cell* cell) {
    const bool gathers = cell->operation == kAllgather;
    b->receive_bytes = gathers ? cell->bytes * (uint64_t)b->size : cell->bytes;
    b->send = memory(cell->bytes + 1);
    b->receive = memory(b->receive_bytes + kGuardBytes);
    const double begin = now_us(), end = begin + cell->seconds * 1e6;
    uint64_t bad = 0, warmed = 0, done = 0, all_bad = 0;
    for (uint64_t more = 1; more != 0; ++warmed) {  // slow ones cannot afford it
        bad += run(b, cell, 0, 1);
        if (b->rank == 0) more = warmed + 1 < kWarmup && now_us() - begin < cell->seconds * 1e5;
        MPI_Bcast(&more, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    }
    for (uint64_t count;; done += count) {
        if (b->rank == 0) count = next_count(warmed, done, begin, end);
        MPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (count == 0) break;
        bad += run(b, cell, done, count);
    }
    double* first = memory(done * sizeof(double));
    double* last = memory(done * sizeof(double));
    MPI_Reduce(b->starts, first, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(b->ends, last, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&bad, &all_bad, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < done; ++i) first[i] = last[i] - first[i];
    qsort(first, done, sizeof(double), by_value);
    const Figure f = {first[done / 10], first[done / 2], first[done - 1 - done / 10], done, all_bad};
    free(first), free(last), free(b->send), free(b->receive);
    return f;
}

static void print_row(const Bench* b, const Cell* cell, Figure f, bool json) {
    const char* form =
        json ? "{\"operation\": \"%s\", \"bytes\": %llu, \"p10_us\": %.3f, \"median_us\": %.3f, "
               "\"p90_us\": %.3f, \"samples\": %llu, \"bad\": %llu, \"ranks\": %d}\n"
             : "%-10s %10llu %10.2f %10.2f %10.2f %9llu %9llu\n";
    if (b->rank != 0) return;
    printf(form, kNames[cell->operation], (unsigned long long)cell->bytes, f.p10, f.median, f.p90,
           (unsigned long long)f.samples, (unsigned long long)f.bad, b->size);
    fflush(stdout);
}

static uint64_t run_all(Bench* b, const Options* o) {
    uint64_t bad = 0;
    if (b->rank == 0 && !o->json)
        printf("%d ranks, last rank's end, microseconds\n%-10s %10s %10s %10s %10s %9s %9s\n", b->size,
               "operation", "bytes", "p10", "median", "p90", "samples", "wrong");
    for (int i = 0; i < o->cell_count; ++i) {
        const Figure f = measure(b, &o->cells[i]);
        bad += f.bad;
        print_row(b, &o->cells[i], f, o->json);
    }
    return bad;
}

// The last messages of the turn may still have to be pushed out, for others to end theirs: MPI must go on a
// little before this rank sleeps in read().
static void settle(void) {
    for (int i = 0; i < 100; ++i) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static uint64_t serve(Bench* b, const char* folder) {
    char path[4096], line[kLineBytes], name[kLineBytes];
    uint64_t bad = 0;
    snprintf(path, sizeof(path), "%s/%d", folder, b->rank);
    FILE* orders = fopen(path, "r");
    if (orders == NULL) {
        fprintf(stderr, "mpi_coll_time: %s: %s\n", path, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    settle();
    if (b->rank == 0) printf("{\"ready\": %d}\n", b->size), fflush(stdout);
    while (fgets(line, sizeof(line), orders) != NULL) {
        Cell cell;
        unsigned long long bytes;
        double seconds;
        const char* error = "--serve: give OPERATION BYTES SECONDS";
        if (sscanf(line, "%127s %llu %lf", name, &bytes, &seconds) == 3)
            error = set_cell(&cell, name, bytes, seconds);
        if (error != NULL) {
            fprintf(stderr, "mpi_coll_time: %s\n", error);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        const Figure f = measure(b, &cell);
        MPI_Barrier(MPI_COMM_WORLD);
        settle();
        bad += f.bad;
        print_row(b, &cell, f, true);
    }
    fclose(orders);
    return bad;
}

int main(int argc, char** argv) {
    Bench b = {.serial = 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    const Options o = parse(argc, argv, b.rank, b.size);
    b.root = o.root;
    b.starts = memory((kMaxSamples + kWarmup) * sizeof(double));
    b.ends = memory((kMaxSamples + kWarmup) * sizeof(double));
    uint64_t bad = o.serve != NULL ? serve(&b, o.serve) : run_all(&b, &o);
    MPI_Bcast(&bad, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (o.serve != NULL && b.rank == 0) printf("{\"end\": %llu}\n", (unsigned long long)bad), fflush(stdout);
    free(b.starts), free(b.ends);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
