// mcastcoll-perf-mpi: measures MPI collectives, as one stack's side of a comparison of several.
//
// Stacks can only be compared fairly in turns within one run, with the same code and the same clock. So this
// program compiles with any MPI and stays alive between its turns: each rank sleeps in read() on a pipe of
// its own, where no MPI can spin, and measures on request. mcastcoll-perf starts and controls the program; by
// hand:
//
//     mpirun -n 4 mcastcoll-perf-mpi bcast:64K:1 iallreduce:8:1
//
// Measured per operation: `last`, the last rank's end minus the start, which is the root's entry where all
// wait for the root and else the last rank's entry (ranks must run under one kernel, whose clock they
// compare); `max`, the longest of all ranks' own times, as in the OSU and Intel benchmarks, which needs no
// common clock. Each operation starts from a barrier, has new data, and is checked outside the timed part.
// The number of operations follows from the time allowed; rank 0 decides how many come next. The first few
// are warm-up. Nonblocking operations are measured again with a computation of the same length between start
// and wait; the share of the operation that this hides is the overlap.
//
// A stack whose barrier releases the ranks one after the other would have half of the next operation done
// before the last rank enters it, and look better than it is. So all stacks have the same last step before
// the start: a barrier in memory shared by the ranks, FOLDER/board.
//
// With --floor the operations are those of perf_floor.h, and everything else is the same. The time of an
// operation that lost datagrams is infinite, and not counted.

#define _GNU_SOURCE  // CPU sets
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perf_floor.h"

enum { kMaxLineBytes = 256, kOverlapSamples = 50 };
static const double kOverlapShare = 0.25;  // extra time for overlap, as a share of the time allowed

enum kind {
    kBcast,
    kBarrier,
    kReduce,
    kAllreduce,
    kAllgather,
    kAllgatherv,
    kGather,
    kGatherv,
    kScatter,
    kScatterv,
    kAlltoall,
    kAlltoallv,
    kReduceScatter,
    kReduceScatterBlock,
    kScan,
    kExscan,
    kKinds
};

static const struct {
    const char* name;  // of the nonblocking form; the blocking form has no leading i
    int does;
} kTraits[kKinds] = {
    [kBcast] = {"ibcast", kPerfRooted},
    [kBarrier] = {"ibarrier", 0},
    [kReduce] = {"ireduce", kPerfReduces | kPerfToRoot},
    [kAllreduce] = {"iallreduce", kPerfReduces},
    [kAllgather] = {"iallgather", kPerfTakes},
    [kAllgatherv] = {"iallgatherv", kPerfTakes},
    [kGather] = {"igather", kPerfTakes | kPerfToRoot},
    [kGatherv] = {"igatherv", kPerfTakes | kPerfToRoot},
    [kScatter] = {"iscatter", kPerfRooted | kPerfDeals},
    [kScatterv] = {"iscatterv", kPerfRooted | kPerfDeals},
    [kAlltoall] = {"ialltoall", kPerfDeals | kPerfTakes},
    [kAlltoallv] = {"ialltoallv", kPerfDeals | kPerfTakes},
    [kReduceScatter] = {"ireduce_scatter", kPerfReduces | kPerfSpreads},
    [kReduceScatterBlock] = {"ireduce_scatter_block", kPerfReduces | kPerfSpreads},
    [kScan] = {"iscan", kPerfReduces},
    [kExscan] = {"iexscan", kPerfReduces},
};

struct board {
    _Atomic uint32_t arrived, generation;
};

// This rank's side of the operations of the current cell.
struct bench {
    struct board* board;  // NULL: none, ranks may be on several hosts
    double *starts, *ends, *own;
    enum kind kind;
    bool nonblocking;
    const char* name;
    struct perf_side side;
    int *counts, *places;  // of the v forms, and of reduce_scatter
    double seconds;
    int probes;  // calls of MPI_Test during the computation
    uint64_t bad;
    struct perf_floor* floor;  // NULL: MPI's own operations
};

static void give_up(const char* text, const char* what) {
    fprintf(stderr, "mcastcoll-perf-mpi: %s: %s\n", text, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

// Parses OPERATION:BYTES:SECONDS[:PROBES], bytes with K or M. Returns an error or NULL.
static const char* read_cell(const char* text, struct bench* b) {
    static const char kForm[] = "give OPERATION:BYTES:SECONDS[:PROBES]";
    char name[64], unit = ' ';
    unsigned long long bytes = 0;
    int used = 0, kind = 0;
    b->seconds = 1;
    b->probes = 0;
    if (sscanf(text, "%63[a-z_]:%llu%n", name, &bytes, &used) != 2) return kForm;
    if (text[used] == 'K' || text[used] == 'M') unit = text[used++];
    if (text[used] != '\0' && sscanf(text + used, ":%lf:%d", &b->seconds, &b->probes) < 1) return kForm;
    while (kind < kKinds && strcmp(name, kTraits[kind].name) != 0 &&
           strcmp(name, kTraits[kind].name + 1) != 0)
        ++kind;
    if (kind == kKinds) return "unknown operation: give bcast, barrier, ..., with or without the prefix i";
    b->kind = (enum kind)kind;
    b->nonblocking = strcmp(name, kTraits[kind].name) == 0;
    b->name = kTraits[kind].name + !b->nonblocking;
    b->side.bytes = (uint64_t)bytes << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
    if (b->side.bytes > (UINT64_C(1) << 30)) return "at most 1024M bytes";
    if (!(b->seconds > 0 && b->seconds <= 600)) return "more than 0, at most 600 seconds";
    if (b->probes < 0 || b->probes > 1000000) return "0 to 1000000 probes";
    return NULL;
}

// Prepares the operations of the cell. Returns an error or NULL.
static const char* open_cell(struct bench* b) {
    struct perf_side* s = &b->side;
    const uint64_t size = (uint64_t)s->size;
    s->does = kTraits[b->kind].does;
    if (b->kind == kBarrier) s->bytes = 0;
    if (s->does & kPerfReduces) {
        if (s->bytes % 8 != 0) return "reductions need multiples of 8 bytes";
        s->elements = s->bytes / 8;
        // Equal parts: at least one element each, without a remainder.
        if (b->kind == kReduceScatterBlock) s->elements = (s->elements + size - 1) / size * size;
    }
    perf_lay_out(s);
    if (s->send_bytes > INT_MAX || s->receive_bytes > INT_MAX)
        return "a buffer of all ranks' parts must be below 2G";
    if (b->kind == kScan) s->summed = s->rank + 1;
    if (b->kind == kExscan) s->summed = s->rank;
    if (b->kind == kExscan && s->rank == 0) s->own_elements = 0;  // MPI leaves rank 0's result undefined
    b->counts = calloc(2 * size, sizeof(int));
    s->send = perf_memory(s->send_bytes);
    s->receive = perf_memory(s->receive_bytes);
    if (b->counts == NULL || s->send == NULL || s->receive == NULL) return "no memory";
    b->places = b->counts + size;
    for (int r = 0; r < s->size; ++r) {
        b->counts[r] = (int)(s->does & kPerfSpreads ? perf_part(s, r) : s->bytes);
        b->places[r] = s->does & (kPerfDeals | kPerfTakes) ? r * (int)s->bytes : 0;
    }
    return NULL;
}

#define CALL(now, later, ...) (q == NULL ? MPI_##now(__VA_ARGS__) : MPI_##later(__VA_ARGS__, q))

// Calls the operation; sets *request if it is nonblocking.
static int start(struct bench* b, MPI_Request* request) {
    MPI_Request* const q = b->nonblocking ? request : NULL;
    const MPI_Comm all = MPI_COMM_WORLD;
    const bool reduces = (b->side.does & kPerfReduces) != 0;
    const MPI_Datatype type = reduces ? MPI_DOUBLE : MPI_BYTE;
    const int n = (int)(reduces ? b->side.elements : b->side.bytes), root = b->side.root;
    void *const s = b->side.send, *const r = b->side.receive;
    switch (b->kind) {
        case kBcast:
            return CALL(Bcast, Ibcast, r, n, type, root, all);
        case kBarrier:
            return CALL(Barrier, Ibarrier, all);
        case kReduce:
            return CALL(Reduce, Ireduce, s, r, n, type, MPI_SUM, root, all);
        case kAllreduce:
            return CALL(Allreduce, Iallreduce, s, r, n, type, MPI_SUM, all);
        case kAllgather:
            return CALL(Allgather, Iallgather, s, n, type, r, n, type, all);
        case kAllgatherv:
            return CALL(Allgatherv, Iallgatherv, s, n, type, r, b->counts, b->places, type, all);
        case kGather:
            return CALL(Gather, Igather, s, n, type, r, n, type, root, all);
        case kGatherv:
            return CALL(Gatherv, Igatherv, s, n, type, r, b->counts, b->places, type, root, all);
        case kScatter:
            return CALL(Scatter, Iscatter, s, n, type, r, n, type, root, all);
        case kScatterv:
            return CALL(Scatterv, Iscatterv, s, b->counts, b->places, type, r, n, type, root, all);
        case kAlltoall:
            return CALL(Alltoall, Ialltoall, s, n, type, r, n, type, all);
        case kAlltoallv:
            return CALL(Alltoallv, Ialltoallv, s, b->counts, b->places, type, r, b->counts, b->places, type,
                        all);
        case kReduceScatter:
            return CALL(Reduce_scatter, Ireduce_scatter, s, r, b->counts, type, MPI_SUM, all);
        case kReduceScatterBlock:
            return CALL(Reduce_scatter_block, Ireduce_scatter_block, s, r, (int)b->side.own_elements, type,
                        MPI_SUM, all);
        case kScan:
            return CALL(Scan, Iscan, s, r, n, type, MPI_SUM, all);
        case kExscan:
            return CALL(Exscan, Iexscan, s, r, n, type, MPI_SUM, all);
        case kKinds:
            break;
    }
    return MPI_ERR_OTHER;
}

static const char* open_floor_cell(struct bench* b) {
    const enum perf_floor_operation operation = b->nonblocking          ? kFloorNone
                                                : b->kind == kBcast     ? kFloorBcast
                                                : b->kind == kBarrier   ? kFloorBarrier
                                                : b->kind == kAllreduce ? kFloorAllreduce
                                                                        : kFloorNone;
    return perf_floor_begin(b->floor, operation, b->side.bytes);
}

// Polls the clock in place of a computation: without MPI calls except the probes.
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

// Starts all ranks together, as far as the scheduler allows, independently of the MPI's barrier.
static void line_up(struct bench* b) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (b->board == NULL) return;
    const uint32_t generation = atomic_load(&b->board->generation);
    if (atomic_fetch_add(&b->board->arrived, 1) + 1 == (uint32_t)b->side.size) {
        atomic_store(&b->board->arrived, 0);
        atomic_fetch_add(&b->board->generation, 1);
        return;
    }
    while (atomic_load(&b->board->generation) == generation) sched_yield();
}

// Runs one operation from entry to end, with a computation of compute_us in between.
static bool once(struct bench* b, uint64_t slot, double compute_us, int probes) {
    ++b->side.serial;
    perf_prepare(&b->side);
    line_up(b);
    MPI_Request request = MPI_REQUEST_NULL;
    const double begin = perf_now_us();
    const bool lost = b->floor != NULL && !perf_floor_run(b->floor, &b->side);
    int code = b->floor != NULL ? MPI_SUCCESS : start(b, &request);
    if (compute_us > 0) compute(compute_us, probes, &request);
    if (b->nonblocking && code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    const double end = perf_now_us();
    b->ends[slot] = end;
    b->own[slot] = lost ? HUGE_VAL : end - begin;
    b->starts[slot] = (b->side.does & kPerfRooted) && b->side.rank != b->side.root ? 0 : begin;
    // Without a barrier, early ranks would verify and fill the next buffers on a core that other ranks still
    // need.
    MPI_Barrier(MPI_COMM_WORLD);
    return lost || (code == MPI_SUCCESS && perf_verify(&b->side));
}

static bool run(void* bench, uint64_t slot, uint64_t count) {
    struct bench* b = bench;
    for (uint64_t i = slot; i < slot + count; ++i) {
        if (once(b, i, 0, 0)) continue;
        if (b->bad++ == 0)
            fprintf(stderr,
                    "mcastcoll-perf-mpi: rank %d: %s of %llu bytes failed or had wrong data; later such "
                    "operations are only counted\n",
                    b->side.rank, b->name, (unsigned long long)b->side.bytes);
    }
    return true;
}

static uint64_t agree(void* bench, uint64_t own) {
    (void)bench;
    MPI_Bcast(&own, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return own;
}

// The share of the operation hidden by a computation of the same length, from the medians of all ranks'
// longest times.
static double overlap(struct bench* b, double alone_us) {
    uint64_t count = kOverlapSamples;
    const double allowed = b->seconds * 1e6 * kOverlapShare / (2 * alone_us + 1);
    if (allowed < (double)count) count = allowed < kPerfMinSamples ? kPerfMinSamples : (uint64_t)allowed;
    double agreed[2] = {alone_us, (double)count}, longest[kOverlapSamples];
    MPI_Bcast(agreed, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    count = (uint64_t)agreed[1];
    for (uint64_t i = 0; i < count; ++i) b->bad += !once(b, i, agreed[0], b->probes);
    MPI_Reduce(b->own, longest, (int)count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (b->side.rank != 0) return 0;
    const double hidden = 1 - (perf_sum_up(longest, count).median - agreed[0]) / agreed[0];
    return hidden < 0 ? 0 : hidden > 1 ? 100 : 100 * hidden;
}

// Valid on rank 0.
static struct perf_result sum_up(const struct bench* b, uint64_t done) {
    struct perf_result result = {.operation = b->name,
                                 .bytes = b->side.bytes,
                                 .samples = done,
                                 .ranks = b->side.size,
                                 .overlap_percent = -1,
                                 .lost = -1};
    double* first = malloc(3 * done * sizeof(double));
    if (first == NULL) give_up("samples", "no memory");
    double *const last = first + done, *const longest = last + done;
    MPI_Reduce(b->starts, first, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(b->ends, last, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(b->own, longest, (int)done, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    uint64_t whole = 0;
    for (uint64_t i = 0; i < done && b->side.rank == 0; ++i) {
        if (isinf(longest[i])) continue;
        last[whole] = last[i] - first[i];
        longest[whole++] = longest[i];
    }
    if (whole > 0) {
        result.last = perf_sum_up(last, whole);
        result.max = perf_sum_up(longest, whole);
    } else {
        result.unavailable = "every round lost datagrams: without repair the floor does not have it";
    }
    result.samples = whole;
    if (b->floor != NULL) result.lost = (int64_t)(done - whole);
    free(first);
    return result;
}

static void close_floor_cell(struct bench* b, uint64_t lost_before, struct perf_result* result) {
    const uint64_t lost = perf_floor_lost(b->floor) - lost_before;
    MPI_Reduce(&lost, &result->lost_datagrams, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    perf_floor_end(b->floor);
}

// Measures the cell described by the text; valid on rank 0.
static struct perf_result measure(struct bench* b, const char* text) {
    const uint64_t before = b->side.serial;
    const char* error = read_cell(text, b);
    if (error == NULL) error = open_cell(b);
    if (error != NULL) give_up(text, error);
    b->bad = 0;
    struct perf_result result = {.operation = b->name, .bytes = b->side.bytes};
    if (b->floor != NULL) result.unavailable = open_floor_cell(b);
    const bool refused = result.unavailable != NULL;
    const uint64_t lost_before = b->floor != NULL ? perf_floor_lost(b->floor) : 0;
    if (!refused) result = sum_up(b, perf_measure(b->seconds, b, run, agree));
    if (!refused && b->floor != NULL) close_floor_cell(b, lost_before, &result);
    if (!refused && b->nonblocking) result.overlap_percent = overlap(b, result.max.median);
    result.operations = b->side.serial - before;
    MPI_Reduce(&b->bad, &result.bad, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    free(b->counts), free(b->side.send), free(b->side.receive);
    return result;
}

// Drives progress for a moment before this rank sleeps in read(): peers may depend on the last messages of
// the repetition.
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
    snprintf(path, sizeof(path), "%s/%d", folder, b->side.rank);
    FILE* orders = fopen(path, "r");
    if (orders == NULL) give_up(path, strerror(errno));
    open_board(b, folder);
    MPI_Barrier(MPI_COMM_WORLD);
    settle();
    if (b->side.rank == 0) printf("{\"ready\": %d}\n", b->side.size), fflush(stdout);
    while (fgets(line, sizeof(line), orders) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const struct perf_result result = measure(b, line);
        MPI_Barrier(MPI_COMM_WORLD);
        settle();
        if (b->side.rank == 0) perf_print(&result);
        bad += result.bad;
    }
    fclose(orders);
    if (b->side.rank == 0) printf("{\"end\": %llu}\n", (unsigned long long)bad), fflush(stdout);
    return bad;
}

// Binds ranks to the available cores in turn: without binding, the ranks that share a core change from job to
// job, and a stack's times by half with them.
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
    struct bench b = {.board = NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.side.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.side.size);
    b.starts = (double*)(void*)perf_memory(3 * kPerfMaxSamples * sizeof(double));
    if (b.starts == NULL) give_up("samples", "no memory");
    b.ends = b.starts + kPerfMaxSamples;
    b.own = b.ends + kPerfMaxSamples;
    uint64_t bad = 0;
    if (argc > 1 && strcmp(argv[1], "--stay") == 0) {
        stay_on_core(b.side.rank);
        --argc, ++argv;
    }
    if (argc > 2 && strcmp(argv[1], "--floor") == 0) {
        const char* error = NULL;
        b.floor = perf_floor_open(strcmp(argv[2], "yield") == 0, &error);
        if (b.floor == NULL) give_up("--floor", error);
        argc -= 2, argv += 2;
    }
    if (argc == 3 && strcmp(argv[1], "--serve") == 0)
        bad = serve(&b, argv[2]);
    else if (argc < 2 || argv[1][0] == '-')
        give_up(
            argc < 2 ? "no arguments" : argv[1],
            "give [--stay] [--floor yield|spin], and --serve FOLDER or OPERATION:BYTES:SECONDS[:PROBES]...");
    else
        for (int i = 1; i < argc; ++i) {
            const struct perf_result result = measure(&b, argv[i]);
            if (b.side.rank == 0) perf_print(&result);
            bad += result.bad;
        }
    MPI_Bcast(&bad, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    free(b.starts), free(b.floor);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
