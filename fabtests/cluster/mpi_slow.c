// mpi_slow -- a large broadcast to a member that reads slowly, while the others exchange small broadcasts.
//
// The pace of a root is the pace of its slowest receiver: the root must neither send faster, because the
// excess would have to be repaired, nor delay unrelated groups. A child process stops and continues the slow
// rank, which runs for a share of each period; the slow rank is only in the large broadcast's communicator.
// The remaining ranks run the small broadcasts in a second thread, first alone, then until the large
// broadcast has ended on all ranks (the root does not return earlier). Every byte of both is checked.
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "../mpi/mpi_support.h"

enum { kSmallBytes = 64, kMaxSamples = 1 << 20 };

typedef struct {
    uint64_t bytes, alone, period_us;
    int slow;  // -1: no rank is stopped
    unsigned share_percent;
    const char* json;
} Options;

typedef struct {
    double median, p99;
    uint64_t count;
} Figure;

typedef struct {
    MPI_Comm comm;
    uint64_t min;             // broadcasts before the last round
    const atomic_bool* over;  // continues until this is set on the root
    float* samples;           // us
    uint64_t count;
} Small;

static const char kHelp[] =
    "usage: mpirun -n 4 ... mpi_slow [options]\n"
    "  --size BYTES    of the large broadcast from rank 0, with K, M or G [64M]\n"
    "  --slow RANK     which reads slowly, not 0 [none]\n"
    "  --share PERCENT of the time that the slow rank may run [1]\n"
    "  --period US     in which it has its share [20000]\n"
    "  --alone N       small broadcasts before the large one [300]\n"
    "  --json FILE     write the result there too\n"
    "  --help, --version\n"
    "The last rank is never in the small broadcasts, slow or not.\n";

static bool parse(int argc, char** argv, Options* o) {
    static const struct option kLong[] = {
        {"size", 1, NULL, 's'},  {"slow", 1, NULL, 'w'}, {"share", 1, NULL, 'p'}, {"period", 1, NULL, 't'},
        {"alone", 1, NULL, 'n'}, {"json", 1, NULL, 'j'}, {NULL, 0, NULL, 0}};
    uint64_t slow = 0, share = 1;
    bool good = true;
    opterr = 0;
    *o = (Options){.bytes = 64 << 20, .alone = 300, .period_us = 20000, .slow = -1};
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        switch (c) {
            case 's':
                good &= parse_size(optarg, &o->bytes) == 0 && o->bytes <= UINT64_C(1) << 30;
                break;
            case 'w':
                good &= parse_size(optarg, &slow) == 0 && slow > 0 && slow < 1000;
                o->slow = (int)slow;
                break;
            case 'p':
                good &= parse_size(optarg, &share) == 0 && share >= 1 && share <= 100;
                break;
            case 't':
                good &=
                    parse_size(optarg, &o->period_us) == 0 && o->period_us >= 1000 && o->period_us <= 1000000;
                break;
            case 'n':
                good &= parse_size(optarg, &o->alone) == 0 && o->alone >= 1 && o->alone <= 100000;
                break;
            case 'j':
                o->json = optarg;
                break;
            default:
                good = false;
        }
    }
    o->share_percent = (unsigned)share;
    return good && optind == argc;
}

static double now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

// Runs in the child. From the first byte in the pipe until the second, lets its parent run for a share of
// each period, and stops it for the rest.
static void brake(int orders, pid_t parent, const Options* o) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A share of 200 us is possible on a busy machine only for a process that does not queue for a core;
    // without this priority the share is longer.
    const struct sched_param first = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO, &first);
    (void)prctl(PR_SET_TIMERSLACK, 1000);
    char byte;
    if (read(orders, &byte, 1) != 1) _exit(0);
    fd_set set;
    const useconds_t runs = (useconds_t)(o->period_us * o->share_percent / 100);
    for (bool go_on = true; go_on;) {
        kill(parent, SIGSTOP);
        usleep((useconds_t)o->period_us - runs);
        kill(parent, SIGCONT);
        usleep(runs);
        FD_ZERO(&set);
        FD_SET(orders, &set);
        struct timeval none = {0, 0};
        go_on = select(orders + 1, &set, NULL, NULL, &none) == 0;
    }
    _exit(0);
}

// Starts the child that runs brake(), before MPI_Init, because a process that uses MPI should not fork. Only
// the slow rank uses its child.
static int start_brake(const Options* o) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t parent = getpid(), child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        close(ends[1]);
        brake(ends[0], parent, o);
    }
    close(ends[0]);
    return ends[1];
}

static void order(int pipe_end) {
    if (pipe_end >= 0 && write(pipe_end, "x", 1) != 1) MPI_Abort(MPI_COMM_WORLD, 3);
}

// Every rank is root in turn, so that each rank waits for the previous root and cannot run ahead. Rank 0
// marks the last round in the first byte.
static void* broadcast_small(void* argument) {
    Small* s = argument;
    int rank, size;
    MPI_Comm_rank(s->comm, &rank);
    MPI_Comm_size(s->comm, &size);
    uint8_t buffer[kSmallBytes];
    for (bool last = false; !last || s->count % (uint64_t)size != 0; ++s->count) {
        const int root = (int)(s->count % (uint64_t)size);
        for (size_t b = 0; b < sizeof buffer; ++b)
            buffer[b] = rank == root ? pattern_byte(s->count, b) : 0xa5;
        if (rank == 0 && root == 0)
            buffer[0] =
                (s->count >= s->min && atomic_load(s->over)) || s->count + (uint64_t)size >= kMaxSamples;
        const double start = now_us();
        const int rc = MPI_Bcast(buffer, (int)sizeof buffer, MPI_BYTE, root, s->comm);
        s->samples[s->count] = (float)(now_us() - start);
        bool good = rc == MPI_SUCCESS && (root != 0 || buffer[0] <= 1);
        for (size_t b = root == 0; good && b < sizeof buffer; ++b)
            good = buffer[b] == pattern_byte(s->count, b);
        if (!good) {
            fprintf(stderr, "small broadcast %llu is wrong\n", (unsigned long long)s->count);
            MPI_Abort(MPI_COMM_WORLD, 1);  // the order may be wrong, too
        }
        if (root == 0) last = buffer[0] == 1;
    }
    return NULL;
}

static uint64_t broadcast_large(const Options* o, int rank, int brake_pipe, double* seconds) {
    uint8_t* memory = malloc(o->bytes + 1);
    if (memory == NULL) {
        fprintf(stderr, "mpi_slow: no memory for %llu bytes\n", (unsigned long long)o->bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 1;
    }
    for (uint64_t b = 0; rank == 0 && b < o->bytes; ++b) memory[b] = pattern_byte(7, b);
    if (rank != 0) memset(memory, 0xa5, o->bytes + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    order(brake_pipe);
    const double start = now_us();
    bool good = MPI_Bcast(memory, (int)o->bytes, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
    *seconds = (now_us() - start) / 1e6;
    order(brake_pipe);
    for (uint64_t b = 0; good && b < o->bytes; ++b) good = memory[b] == pattern_byte(7, b);
    if (!good) fprintf(stderr, "rank %d: the large broadcast is wrong\n", rank);
    free(memory);
    return good ? 0 : 1;
}

static int by_value(const void* a, const void* b) {
    const float x = *(const float*)a, y = *(const float*)b;
    return (x > y) - (x < y);
}

// Returns the statistics of the samples of all ranks of the communicator; valid on its rank 0.
static Figure collect(MPI_Comm comm, const float* samples, uint64_t count) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const uint64_t total = count * (uint64_t)size;
    float* all = rank == 0 ? malloc(total * sizeof(float)) : NULL;
    if (rank == 0 && all == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Gather(samples, (int)count, MPI_FLOAT, all, (int)count, MPI_FLOAT, 0, comm);
    Figure f = {0, 0, count};
    if (rank == 0) {
        qsort(all, total, sizeof(float), by_value);
        f = (Figure){all[total / 2], all[total - 1 - total / 100], count};
    }
    free(all);
    return f;
}

static void report(const Options* o, int size, double seconds, Figure alone, Figure beside, uint64_t bad) {
    const double mb = (double)o->bytes / 1e6 / seconds;
    printf("%d ranks, %llu bytes in %.3f s (%.1f MB/s)%s\n", size, (unsigned long long)o->bytes, seconds, mb,
           o->slow >= 0 ? ", one of them slow" : "");
    printf("small ones alone:      %8llu, median %8.1f us, p99 %10.1f us\n", (unsigned long long)alone.count,
           alone.median, alone.p99);
    printf("small ones beside it:  %8llu, median %8.1f us, p99 %10.1f us\n", (unsigned long long)beside.count,
           beside.median, beside.p99);
    printf("%llu bad broadcasts: %s\n", (unsigned long long)bad, bad == 0 ? "ok" : "FAILED");
    if (o->json == NULL) return;
    FILE* json = fopen(o->json, "w");
    if (json == NULL) {
        fprintf(stderr, "mpi_slow: %s: %s\n", o->json, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 2);
        return;
    }
    fprintf(json,
            "{\"ranks\": %d, \"bytes\": %llu, \"slow\": %d, \"share_percent\": %u, \"seconds\": %.4f, "
            "\"bad\": %llu,\n"
            " \"alone\": {\"count\": %llu, \"median_us\": %.1f, \"p99_us\": %.1f},\n"
            " \"beside\": {\"count\": %llu, \"median_us\": %.1f, \"p99_us\": %.1f}}\n",
            size, (unsigned long long)o->bytes, o->slow, o->share_percent, seconds, (unsigned long long)bad,
            (unsigned long long)alone.count, alone.median, alone.p99, (unsigned long long)beside.count,
            beside.median, beside.p99);
    if (fclose(json) != 0) fprintf(stderr, "mpi_slow: %s: %s\n", o->json, strerror(errno));
}

// Returns the number of wrong broadcasts on this rank.
static uint64_t run(const Options* o, int rank, int size, int brake_pipe) {
    atomic_bool over = true;
    MPI_Comm small_comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 || rank == o->slow ? MPI_UNDEFINED : 0, rank,
                   &small_comm);
    const bool both = small_comm != MPI_COMM_NULL;
    float* samples = both ? malloc(kMaxSamples * sizeof(float)) : NULL;
    if (both && samples == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    Small small = {small_comm, o->alone, &over, samples, 0};
    Figure alone = {0}, beside = {0};
    double seconds = 0;
    uint64_t bad = 0;
    if (both) {
        broadcast_small(&small);
        alone = collect(small_comm, samples, small.count);
    }
    atomic_store(&over, false);
    small = (Small){small_comm, 1, &over, samples, 0};
    pthread_t thread;
    if (both && pthread_create(&thread, NULL, broadcast_small, &small) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    bad = broadcast_large(o, rank, rank == o->slow ? brake_pipe : -1, &seconds);
    atomic_store(&over, true);
    if (both) {
        pthread_join(thread, NULL);
        beside = collect(small_comm, samples, small.count);
        MPI_Comm_free(&small_comm);
    }
    free(samples);
    uint64_t all_bad = 0;
    MPI_Allreduce(&bad, &all_bad, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) report(o, size, seconds, alone, beside, all_bad);
    return all_bad;
}

int main(int argc, char** argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return fputs(kHelp, stdout) < 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) return puts("mpi_slow " MCC_VERSION) < 0;
    Options o;
    const bool good = parse(argc, argv, &o);
    const int brake_pipe = good ? start_brake(&o) : -1;
    int rank, size, provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!good || size < 4 || o.slow >= size)
        leave(rank, 2, "mpi_slow: bad arguments or fewer than 4 ranks, see --help\n");
    if (provided < MPI_THREAD_MULTIPLE)
        leave(rank, 77, "mpi_slow: this Open MPI has no MPI_THREAD_MULTIPLE\n");
    const uint64_t bad = run(&o, rank, size, brake_pipe);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
