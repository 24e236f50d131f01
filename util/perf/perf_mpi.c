// mcastcoll-perf-mpi: how long collectives of MPI take, one stack's side of a comparison of several.
//
// Why it exists: stacks can only be compared fairly when they take turns within one run, on the same code and
// the same clock. So this program compiles with any MPI and stays alive between its turns: each rank sleeps
// in read() on a pipe of its own, where no MPI can spin, and measures when it is told to. mcastcoll-perf
// starts it and speaks to it; by hand:
//
//     mpirun -n 4 mcastcoll-perf-mpi bcast:64K:1 iallreduce:8:1
//
// What is measured, per operation: `last`, the last rank's end minus the start, which is the root's entry
// where all wait for the root and else the last rank's entry (ranks must run under one kernel, whose clock
// they compare); `max`, the longest of all ranks' own times, as the OSU and Intel benchmarks have it, which
// any machine can tell. Each operation starts from a barrier, has new data, and is checked outside the timed
// part. How many there are follows from the time allowed; rank 0 says how many come next. The first few do
// not count. Nonblocking ones are measured again with as long a computation as they took between start and
// wait; what of the operation that hides is the overlap.
//
// Who leaves its barriers one after the other would have half of the next operation done before the last rank
// enters it, and look the better for it. So all stacks have the same last step before the start: a barrier in
// memory that the ranks share, FOLDER/board.

#define _GNU_SOURCE  // CPU sets
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf_mpi_operations.h"

enum { kMaxLineBytes = 256, kOverlapSamples = 50 };
static const double kOverlapShare = 0.25;  // of the time allowed, which comes on top of it

struct cell {
    struct perf_operation operation;
    uint64_t bytes;
    double seconds;
    int probes;  // calls of MPI_Test while it computes
};

struct board {
    _Atomic uint32_t arrived, generation;
};

struct bench {
    int rank, size, root;
    struct board* board;  // NULL: none, the ranks may be anywhere
    uint64_t serial;
    double *starts, *ends, *own;
};

static void give_up(const char* text, const char* what) {
    fprintf(stderr, "mcastcoll-perf-mpi: %s: %s\n", text, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

// OPERATION:BYTES:SECONDS[:PROBES], bytes with K or M. The error, or NULL.
static const char* read_cell(const char* text, struct cell* cell) {
    char name[64], unit = ' ';
    unsigned long long bytes = 0;
    int used = 0;
    *cell = (struct cell){.seconds = 1};
    if (sscanf(text, "%63[a-z_]:%llu%n", name, &bytes, &used) != 2)
        return "give OPERATION:BYTES:SECONDS[:PROBES]";
    if (text[used] == 'K' || text[used] == 'M') unit = text[used++];
    if (text[used] != '\0' && sscanf(text + used, ":%lf:%d", &cell->seconds, &cell->probes) < 1)
        return "give OPERATION:BYTES:SECONDS[:PROBES]";
    if (!perf_find(name, &cell->operation))
        return "no such operation: bcast, barrier, ..., with or without i";
    cell->bytes = (uint64_t)bytes << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
    if (cell->bytes > (UINT64_C(1) << 30)) return "at most 1024M bytes";
    if (!(cell->seconds > 0 && cell->seconds <= 600)) return "more than 0, at most 600 seconds";
    if (cell->probes < 0 || cell->probes > 1000000) return "0 to 1000000 probes";
    return NULL;
}

// Looks at the clock, as a program looks at its data: no call of MPI but the probes.
static void compute(double us, int probes, MPI_Request* request) {
    const double begin = perf_now_us();
    int probed = 0, done = 0;
    for (double now = begin; now - begin < us; now = perf_now_us()) {
        if (probed >= probes || now - begin < us * (probed + 1) / (probes + 1)) continue;
        ++probed;
        if (!done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}

static void open_board(struct bench* b, const char* folder) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/board", folder);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) give_up(path, strerror(errno));
    void* at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) give_up(path, strerror(errno));
    close(file);
    b->board = at;
}

// All begin together, as far as the scheduler lets them, whatever their MPI's barrier is like.
static void line_up(struct bench* b) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->board == NULL) return;
    const uint32_t generation = atomic_load(&b->board->generation);
    if (atomic_fetch_add(&b->board->arrived, 1) + 1 == (uint32_t)b->size) {
        atomic_store(&b->board->arrived, 0);
        atomic_fetch_add(&b->board->generation, 1);
        return;
    }
    while (atomic_load(&b->board->generation) == generation) sched_yield();
}

// One operation from its entry to its end, computing in between for compute_us.
static bool once(struct bench* b, struct perf_call* call, uint64_t slot, double compute_us, int probes) {
    call->side.serial = ++b->serial;
    perf_prepare(&call->side);
    line_up(b);
    MPI_Request request = MPI_REQUEST_NULL;
    const double start = perf_now_us();
    int code = perf_start(call, &request);
    if (compute_us > 0) compute(compute_us, probes, &request);
    if (call->operation.nonblocking && code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double end = perf_now_us();
    b->ends[slot] = end;
    b->own[slot] = end - start;
    b->starts[slot] = (call->side.does & kPerfRooted) && b->rank != b->root ? 0 : start;
    // Who is early would else verify, and fill the next buffers, on a core that others still need to end.
    MPI_Barrier(MPI_COMM_WORLD);
    return code == MPI_SUCCESS && perf_verify(&call->side);
}

static uint64_t run(struct bench* b, struct perf_call* call, uint64_t slot, uint64_t count) {
    uint64_t bad = 0;
    for (uint64_t i = slot; i < slot + count; ++i) {
        if (once(b, call, i, 0, 0)) continue;
        if (bad++ == 0)
            fprintf(stderr, "mcastcoll-perf-mpi: rank %d: %s of %llu bytes: an error, or wrong data\n",
                    b->rank, perf_name(call->operation), (unsigned long long)call->side.bytes);
    }
    return bad;
}

// What of the operation a computation of the same length hides, from the medians of all ranks' longest times.
static double overlap(struct bench* b, struct perf_call* call, const struct cell* cell, double alone_us,
                      uint64_t* bad) {
    uint64_t count = kOverlapSamples;
    const double allowed = cell->seconds * 1e6 * kOverlapShare / (2 * alone_us + 1);
    if (allowed < (double)count) count = allowed < kPerfLeastSamples ? kPerfLeastSamples : (uint64_t)allowed;
    double plan[2] = {alone_us, (double)count}, longest[kOverlapSamples];
    MPI_Bcast(plan, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    count = (uint64_t)plan[1];
    for (uint64_t i = 0; i < count; ++i) *bad += !once(b, call, i, plan[0], cell->probes);
    MPI_Reduce(b->own, longest, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (b->rank != 0) return 0;
    const double hidden = 1 - (perf_sum_up(longest, count).median - plan[0]) / plan[0];
    return hidden < 0 ? 0 : hidden > 1 ? 100 : 100 * hidden;
}

// Valid on rank 0.
static struct perf_result sum_up(struct bench* b, const struct perf_call* call, uint64_t done) {
    struct perf_result result = {
        .operation = perf_name(call->operation), .bytes = call->side.bytes, .samples = done};
    result.ranks = b->size;
    result.overlap_percent = -1;
    double* first = malloc(3 * done * sizeof(double));
    if (first == NULL) give_up("samples", "no memory");
    double *const last = first + done, *const longest = last + done;
    MPI_Reduce(b->starts, first, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(b->ends, last, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(b->own, longest, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (b->rank == 0) {
        for (uint64_t i = 0; i < done; ++i) last[i] -= first[i];
        result.last = perf_sum_up(last, done);
        result.max = perf_sum_up(longest, done);
    }
    free(first);
    return result;
}

static struct perf_result measure(struct bench* b, const struct cell* cell) {
    struct perf_call call = {.operation = cell->operation};
    call.side = (struct perf_side){.rank = b->rank, .size = b->size, .root = b->root, .bytes = cell->bytes};
    const char* error = perf_open(&call);
    if (error != NULL) give_up(perf_name(cell->operation), error);
    const double begin = perf_now_us(), end = begin + cell->seconds * 1e6;
    const uint64_t first = b->serial;
    uint64_t bad = 0, warmed = 0, done = 0;
    for (uint64_t more = 1; more != 0; ++warmed) {  // slow ones cannot afford it
        bad += run(b, &call, 0, 1);
        if (b->rank == 0) more = warmed + 1 < kPerfWarmup && perf_now_us() - begin < cell->seconds * 1e5;
        MPI_Bcast(&more, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    }
    for (uint64_t count = 0;; done += count) {
        if (b->rank == 0) count = perf_next_count(warmed, done, begin, end);
        MPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (count == 0) break;
        bad += run(b, &call, done, count);
    }
    struct perf_result result = sum_up(b, &call, done);
    if (cell->operation.nonblocking)
        result.overlap_percent = overlap(b, &call, cell, result.max.median, &bad);
    result.operations = b->serial - first;
    MPI_Reduce(&bad, &result.bad, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    perf_close(&call);
    return result;
}

// Measures what the text says; valid on rank 0.
static struct perf_result measure_text(struct bench* b, const char* text) {
    struct cell cell;
    const char* error = read_cell(text, &cell);
    if (error != NULL) give_up(text, error);
    return measure(b, &cell);
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

static uint64_t serve(struct bench* b, const char* folder) {
    char line[kMaxLineBytes], path[4096];
    uint64_t bad = 0;
    snprintf(path, sizeof(path), "%s/%d", folder, b->rank);
    FILE* orders = fopen(path, "r");
    if (orders == NULL) give_up(path, strerror(errno));
    open_board(b, folder);
    MPI_Barrier(MPI_COMM_WORLD);
    settle();
    if (b->rank == 0) printf("{\"ready\": %d}\n", b->size), fflush(stdout);
    while (fgets(line, sizeof(line), orders) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const struct perf_result result = measure_text(b, line);
        MPI_Barrier(MPI_COMM_WORLD);
        settle();
        if (b->rank == 0) perf_print(&result);
        bad += result.bad;
    }
    fclose(orders);
    if (b->rank == 0) printf("{\"end\": %llu}\n", (unsigned long long)bad), fflush(stdout);
    return bad;
}

// Ranks take turns at the cores that this machine has for them, and stay there: which of them share a core
// else changes from job to job, and a stack's times by half with it.
static void stay_on_core(int rank) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    int skip = rank % CPU_COUNT(&allowed);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &allowed) || skip-- != 0) continue;
        CPU_ZERO(&allowed);
        CPU_SET(core, &allowed);
        sched_setaffinity(0, sizeof(allowed), &allowed);
        return;
    }
}

int main(int argc, char** argv) {
    struct bench b = {.root = 0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.size);
    b.starts = (double*)(void*)perf_memory(3 * kPerfMaxSamples * sizeof(double));
    if (b.starts == NULL) give_up("samples", "no memory");
    b.ends = b.starts + kPerfMaxSamples;
    b.own = b.ends + kPerfMaxSamples;
    uint64_t bad = 0;
    if (argc > 1 && strcmp(argv[1], "--stay") == 0) {
        stay_on_core(b.rank);
        --argc, ++argv;
    }
    if (argc == 3 && strcmp(argv[1], "--serve") == 0)
        bad = serve(&b, argv[2]);
    else if (argc < 2 || argv[1][0] == '-')
        give_up(argc < 2 ? "no arguments" : argv[1],
                "give [--stay] OPERATION:BYTES:SECONDS[:PROBES]..., or [--stay] --serve FOLDER");
    else
        for (int i = 1; i < argc; ++i) {
            const struct perf_result result = measure_text(&b, argv[i]);
            if (b.rank == 0) perf_print(&result);
            bad += result.bad;
        }
    MPI_Bcast(&bad, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    free(b.starts);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
