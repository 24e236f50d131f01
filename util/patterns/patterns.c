// patterns KERNEL|pingpong [--iterations N] [--speed X] [--volume X] [--long-us N] [--json FILE]
// patterns count      prints the messages between the two halves of 16 ranks in an iteration of each kernel;
//                     sends nothing
//
// An MPI program with the communication of a NAS kernel, without its arithmetic: computing is sleeping, so
// ranks that share a processor overlap as if each had its own. Every message is stamped and checked; the
// digest is the same for every run.
#include "patterns.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>

#include "perf/perf_data.h"

#ifndef MCC_VERSION
#define MCC_VERSION "development"
#endif

enum { kManyPeers = 8, kPingpongRounds = 40 };

static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t stamp_of(const struct run* run, int from, int to) {
    return mixed((uint64_t)run->iteration << 40 ^ (uint64_t)run->step << 24 ^ (uint64_t)from << 12 ^
                 (uint64_t)to);
}

// First and last bytes; a message shorter than a stamp gets a part of the stamp.
static void write_stamp(const struct run* run, unsigned char* at, size_t bytes, int to) {
    const uint64_t stamp = stamp_of(run, run->rank, to);
    const size_t size = bytes < sizeof stamp ? bytes : sizeof stamp;
    memcpy(at, &stamp, size);
    memcpy(at + bytes - size, &stamp, size);
}
static void check_stamp(struct run* run, const unsigned char* at, size_t bytes, int from) {
    const uint64_t stamp = stamp_of(run, from, run->rank);
    const size_t size = bytes < sizeof stamp ? bytes : sizeof stamp;
    if (bytes >= 2 * size ? memcmp(at, &stamp, size) || memcmp(at + bytes - size, &stamp, size) : 0)
        run->wrong++;
    run->digest += mixed(stamp ^ bytes);
}

static size_t scaled(const struct run* run, size_t bytes) {
    const double wanted = bytes < 4096 ? (double)bytes : (double)bytes * run->volume;
    return wanted > (double)run->room ? run->room : wanted < 1 ? 1 : (size_t)wanted;
}

// Counts a message. Messages inside a collective are not counted, except those of an alltoall.
static void count(struct run* run, int to, size_t bytes) {
    run->messages++;
    run->bytes += bytes;
    if ((run->rank < run->size / 2) == (to < run->size / 2)) return;
    struct crossings* all = &run->crossings;
    int i = 0;
    while (i < all->used && all->at[i].bytes != bytes) i++;
    if (i == kMaxLengths) return;
    if (i == all->used) all->at[all->used++].bytes = bytes;
    all->at[i].messages++;
}

void compute(struct run* run, double milliseconds) {
    if (run->counting) return;
    const double ns = milliseconds * 1e6 / run->speed;
    struct timespec left = {(time_t)(ns / 1e9), (long)(ns - 1e9 * (double)(time_t)(ns / 1e9))};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
    tcp_watch_look(&run->watch);
}

int neighbour(const struct run* run, int rows, int columns) {
    const int row = (run->rank / run->columns + rows + run->rows) % run->rows;
    return row * run->columns + (run->rank % run->columns + columns + run->columns) % run->columns;
}

void exchange_many(struct run* run, const int* peers, int peer_count, size_t bytes) {
    MPI_Request requests[2 * kManyPeers];
    bytes = scaled(run, bytes);
    if (bytes * (size_t)peer_count > run->room) bytes = run->room / (size_t)peer_count;
    run->step++;
    int with[kManyPeers], n = 0;
    for (int i = 0; i < peer_count; i++)
        if (peers[i] >= 0 && peers[i] != run->rank) with[n++] = peers[i];
    for (int i = 0; i < n; i++) count(run, with[i], bytes);
    if (run->counting) return;
    for (int i = 0; i < n; i++)
        MPI_Irecv(run->in + bytes * (size_t)i, (int)bytes, MPI_BYTE, with[i], 1, MPI_COMM_WORLD,
                  &requests[i]);
    for (int i = 0; i < n; i++) {
        write_stamp(run, run->out + bytes * (size_t)i, bytes, with[i]);
        MPI_Isend(run->out + bytes * (size_t)i, (int)bytes, MPI_BYTE, with[i], 1, MPI_COMM_WORLD,
                  &requests[n + i]);
    }
    MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) check_stamp(run, run->in + bytes * (size_t)i, bytes, with[i]);
}

void exchange(struct run* run, int to, int from, size_t bytes) {
    bytes = scaled(run, bytes);
    run->step++;
    if (to == run->rank) return;  // a torus of one
    count(run, to, bytes);
    if (run->counting) return;
    write_stamp(run, run->out, bytes, to);
    MPI_Sendrecv(run->out, (int)bytes, MPI_BYTE, to, 2, run->in, (int)bytes, MPI_BYTE, from, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_stamp(run, run->in, bytes, from);
}

void receive_and_send(struct run* run, int to, int from, size_t bytes) {
    // Sender and receiver are at different steps: the stamp depends on the iteration alone.
    if (to >= 0) count(run, to, bytes);
    if (run->counting) return;
    const int step = run->step;
    run->step = 0;
    if (from >= 0) {
        MPI_Recv(run->in, (int)bytes, MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_stamp(run, run->in, bytes, from);
    }
    if (to >= 0) {
        write_stamp(run, run->out, bytes, to);
        MPI_Send(run->out, (int)bytes, MPI_BYTE, to, 3, MPI_COMM_WORLD);
    }
    run->step = step;
}

void exchange_all(struct run* run, size_t bytes) {
    bytes = scaled(run, bytes);
    if (bytes * (size_t)run->size > run->room) bytes = run->room / (size_t)run->size;
    run->step++;
    for (int i = 0; i < run->size; i++)
        if (i != run->rank) count(run, i, bytes);
    if (run->counting) return;
    for (int i = 0; i < run->size; i++) write_stamp(run, run->out + bytes * (size_t)i, bytes, i);
    MPI_Alltoall(run->out, (int)bytes, MPI_BYTE, run->in, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < run->size; i++) check_stamp(run, run->in + bytes * (size_t)i, bytes, i);
}

void sum_up(struct run* run, size_t bytes) {
    if (run->counting) return;
    const int count = (int)(bytes / sizeof(uint64_t));
    uint64_t *out = (uint64_t*)run->out, *in = (uint64_t*)run->in;
    run->step++;
    for (int i = 0; i < count; i++) out[i] = (uint64_t)(run->rank + 1) * (uint64_t)(run->iteration + i + 1);
    MPI_Allreduce(out, in, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    const uint64_t ranks = (uint64_t)run->size * ((uint64_t)run->size + 1) / 2;
    for (int i = 0; i < count; i++)
        if (in[i] != ranks * (uint64_t)(run->iteration + i + 1)) run->wrong++;
    run->digest += mixed(in[0] + bytes);
    run->messages++;
    run->bytes += bytes;
}

// Half of round trips between the first and the last rank: median and minimum, for each size.
static void pingpong(struct run* run, FILE* json) {
    const int last = run->size - 1;
    double us[kPingpongRounds];
    if (json) fprintf(json, ", \"pingpong\": [");
    for (size_t bytes = 1; bytes <= 1 << 20; bytes *= 4) {
        for (int i = -3; i < kPingpongRounds; i++) {  // negative: warm-up, to open congestion windows
            const double start = perf_now_us();
            if (run->rank == 0) MPI_Send(run->out, (int)bytes, MPI_BYTE, last, 4, MPI_COMM_WORLD);
            if (run->rank == last)
                MPI_Recv(run->in, (int)bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (run->rank == last) MPI_Send(run->out, (int)bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
            if (run->rank == 0)
                MPI_Recv(run->in, (int)bytes, MPI_BYTE, last, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (i >= 0) us[i] = (perf_now_us() - start) / 2;
        }
        const struct perf_figure f = perf_sum_up(us, kPingpongRounds);
        if (run->rank != 0) continue;
        printf("%9zu bytes %12.1f us median %12.1f us least\n", bytes, f.median, f.min);
        if (json)
            fprintf(json, "%s{\"bytes\": %zu, \"median_us\": %.2f, \"least_us\": %.2f}",
                    bytes > 1 ? ", " : "", bytes, f.median, f.min);
    }
    if (json) fprintf(json, "]");
}

static void leave(int rank, int status, const char* text) {
    if (rank == 0) fputs(text, status == 0 ? stdout : stderr);
    MPI_Finalize();
    exit(status);
}

static double positive(int rank, const char* text) {
    char* end;
    const double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end != '\0' || !(value > 0 && value <= 1e9))
        leave(rank, 2, "patterns: an option needs a positive number\n");
    return value;
}

// Counts for every rank of a job of 16 in turn, without MPI: kernel, bytes of a message, messages per
// iteration to the other half.
static int count_all(void) {
    for (const struct kernel* one = kKernels; one->name; one++) {
        struct run run = {
            .size = 16, .rows = 4, .columns = 4, .volume = 1, .room = SIZE_MAX / 16, .counting = 1};
        for (run.rank = 0; run.rank < run.size; run.rank++) one->iterate(&run);
        for (int i = 0; i < run.crossings.used; i++)
            printf("%-4s %9" PRIu64 " bytes %6" PRIu64 "\n", one->name, run.crossings.at[i].bytes,
                   run.crossings.at[i].messages);
    }
    return 0;
}

static void report(struct run* run, const struct kernel* kernel, int iterations, double seconds, FILE* json) {
    struct tcp_sums sums;
    tcp_watch_sum(&run->watch, &sums);
    uint64_t mine[] = {
        run->messages,           run->bytes,           run->digest,     run->wrong,     sums.connections,
        sums.idle_restarts,      sums.retransmissions, sums.duplicates, sums.reordered, sums.all_connections,
        sums.all_retransmissions};
    static const char* const names[] = {"messages",
                                        "bytes",
                                        "digest",
                                        "wrong",
                                        "long_connections",
                                        "idle_restarts",
                                        "long_retransmissions",
                                        "long_duplicates",
                                        "long_reordered",
                                        "connections",
                                        "retransmissions"};
    enum { kSums = sizeof mine / sizeof *mine };
    uint64_t all[kSums];
    double slowest = 0;
    MPI_Reduce(mine, all, kSums, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (run->rank != 0) return;
    printf("%s: %d ranks, %d iterations, %.3f s, %" PRIu64 " messages, %" PRIu64 " bytes, digest %016" PRIx64
           ", %" PRIu64 " wrong\n",
           kernel->name, run->size, iterations, slowest, all[0], all[1], all[2], all[3]);
    if (!json) return;
    fprintf(json, "\"kernel\": \"%s\", \"ranks\": %d, \"iterations\": %d, \"seconds\": %.6f", kernel->name,
            run->size, iterations, slowest);
    for (int i = 0; i < kSums; i++) fprintf(json, ", \"%s\": %" PRIu64, names[i], all[i]);
}

int main(int argc, char** argv) {
    if (argc == 2 && !strcmp(argv[1], "count")) return count_all();
    static struct run run = {.speed = 1, .volume = 1, .watch.long_us = 800};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.size);
    if (argc < 2 || !strcmp(argv[1], "--help"))
        leave(run.rank, argc < 2 ? 2 : 0,
              "usage: patterns count | KERNEL|pingpong|list [--iterations N] [--speed X] [--volume X] "
              "[--long-us N] "
              "[--json FILE]\n");
    if (!strcmp(argv[1], "--version")) leave(run.rank, 0, "mcastcoll " MCC_VERSION "\n");
    if (!strcmp(argv[1], "list")) {
        for (const struct kernel* one = kKernels; one->name && run.rank == 0; one++)
            printf("%-4s %s\n", one->name, one->what);
        leave(run.rank, 0, "pingpong\n");
    }
    int iterations = 0;
    const char* path = NULL;
    for (int i = 2; i < argc; i += 2) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--iterations"))
            iterations = (int)positive(run.rank, value);
        else if (!strcmp(argv[i], "--speed"))
            run.speed = positive(run.rank, value);
        else if (!strcmp(argv[i], "--volume"))
            run.volume = positive(run.rank, value);
        else if (!strcmp(argv[i], "--long-us"))
            run.watch.long_us = (uint32_t)positive(run.rank, value);
        else if (!strcmp(argv[i], "--json") && value)
            path = value;
        else
            leave(run.rank, 2, "patterns: unknown option; see --help\n");
    }
    static const struct kernel none = {.name = "pingpong", .largest = 1 << 20};
    const struct kernel* kernel = kKernels;
    while (kernel->name && strcmp(kernel->name, argv[1])) kernel++;
    if (!strcmp(argv[1], "pingpong")) kernel = &none;
    if (!kernel->name) leave(run.rank, 2, "patterns: unknown kernel; 'patterns list' lists the kernels\n");
    if (run.size < 2) leave(run.rank, 2, "patterns: at least two ranks are needed\n");
    int shape[2] = {0, 0};
    MPI_Dims_create(run.size, 2, shape);
    run.rows = shape[0];
    run.columns = shape[1];
    run.room = (size_t)((double)kernel->largest * (run.volume > 1 ? run.volume : 1)) *
                   (size_t)(kernel->largest > 400000 ? run.size : 2) +
               65536;
    run.out = calloc(1, run.room);
    run.in = calloc(1, run.room);
    FILE* json = run.rank == 0 && path ? fopen(path, "w") : NULL;
    if (!run.out || !run.in || (run.rank == 0 && path && !json)) {
        fprintf(stderr, "patterns: rank %d has no memory for messages, or cannot write '%s': ends the job\n",
                run.rank, path ? path : "");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (json) fprintf(json, "{");
    if (iterations == 0) iterations = kernel->iterations;

    exchange_all(&run, 1);  // connections are made before the clock runs
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (run.iteration = 0; kernel->iterate && run.iteration < iterations; run.iteration++) {
        run.step = 0;
        kernel->iterate(&run);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    report(&run, kernel, iterations, MPI_Wtime() - start, json);
    if (!kernel->iterate) pingpong(&run, json);
    if (json && (fprintf(json, "}\n") < 0 || fclose(json) != 0)) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Allreduce(MPI_IN_PLACE, &run.wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return run.wrong != 0;
}
