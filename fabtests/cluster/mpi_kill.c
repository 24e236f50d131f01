// mpi_kill -- one rank dies in the middle of collectives: do all other ranks get an error in time?
//
// A collective that hangs when a member is gone is worse than none. All ranks repeat the operations of
// --operations, every rank being root in turn; after a warm-up a timer signal kills the victim at an
// arbitrary point, after the victim has written the time to a file. The others must see an operation fail
// (MPI_ERRORS_RETURN) within a limit after that time. Each then reports this in one line, waits a while for
// the others' reports, and exits with 0; 1 means that an error came late, 2 that none came (a hang), 3 that
// data was wrong. All hosts of the virtual cluster share one monotonic clock and one file system, which makes
// the times comparable.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "config.h"

enum { BCAST = 1, BARRIER = 2, ALLREDUCE = 4 };

struct options {
    int victim, warmup, bytes, within_ms, operations;
    const char* mark;
};

static const char kUsage[] =
    "usage: mpi_kill --mark FILE [--victim RANK] [--warmup N] [--bytes N] [--within MS]\n"
    "                [--operations LIST] [--orphan S]\n"
    "  --mark FILE    where the victim leaves the time of its death; must not exist\n"
    "  --victim RANK  the rank that dies (default: the last one)\n"
    "  --warmup N     rounds before it may die (default 50)\n"
    "  --bytes N      of each broadcast or allreduce, of the latter a multiple of 4 (default 65536)\n"
    "  --within MS    how soon the others must get an error (default 15000)\n"
    "  --operations LIST  what a round consists of: bcast, barrier, allreduce (default bcast)\n"
    "  --orphan S     a child of the victim, made by fork(), lives for so many seconds more\n"
    "Needs mpirun --mca orte_abort_on_non_zero_status 0, or Open MPI ends all ranks at once.\n";

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static const char* mark_path;
static unsigned orphan_s;  // seconds for which a child of the victim lives on, with the victim's descriptors

// Writes the current time to the file, then dies as by kill -9.  Makes only calls safe in a signal handler.
static void die_now(int signal_number) {
    (void)signal_number;
    int64_t t = now_ns();
    int fd = open(mark_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, &t, sizeof t) != (ssize_t)sizeof t) _exit(4);
    if (orphan_s > 0 && fork() == 0) {
        sleep(orphan_s);
        _exit(0);
    }
    kill(getpid(), SIGKILL);
}

static void hang(int signal_number) {
    static const char text[] = "mpi_kill: no error came, this rank hangs\n";
    (void)signal_number;
    if (write(2, text, sizeof text - 1)) {
    }
    _exit(2);
}

static double death_ms_ago(void) {
    int64_t t;
    int fd = open(mark_path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, &t, sizeof t);
    if (fd >= 0) close(fd);
    return n == (ssize_t)sizeof t ? (double)(now_ns() - t) / 1e6 : -1;
}

static int parse_number(const char* text, const char* name, int min) {
    char* end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < min || value > 1 << 30) {
        fprintf(stderr, "mpi_kill: --%s '%s' must be a number from %d\n", name, text, min);
        exit(64);
    }
    return (int)value;
}

static int parse_operations(char* text) {
    int all = 0;
    for (char* word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        int one = !strcmp(word, "bcast")       ? BCAST
                  : !strcmp(word, "barrier")   ? BARRIER
                  : !strcmp(word, "allreduce") ? ALLREDUCE
                                               : 0;
        if (!one) {
            fprintf(stderr, "mpi_kill: --operations '%s' is none of bcast, barrier, allreduce\n", word);
            exit(64);
        }
        all |= one;
    }
    return all;
}

static struct options parse(int argc, char** argv) {
    static const struct option known[] = {
        {"mark", required_argument, NULL, 'm'},   {"victim", required_argument, NULL, 'v'},
        {"warmup", required_argument, NULL, 'w'}, {"bytes", required_argument, NULL, 'b'},
        {"within", required_argument, NULL, 'i'}, {"operations", required_argument, NULL, 'o'},
        {"orphan", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0}};
    struct options o = {.victim = -1, .warmup = 50, .bytes = 65536, .within_ms = 15000, .operations = BCAST};
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) switch (c) {
            case 'm':
                o.mark = optarg;
                break;
            case 'v':
                o.victim = parse_number(optarg, "victim", 0);
                break;
            case 'w':
                o.warmup = parse_number(optarg, "warmup", 0);
                break;
            case 'b':
                o.bytes = parse_number(optarg, "bytes", 1);
                break;
            case 'i':
                o.within_ms = parse_number(optarg, "within", 1);
                break;
            case 'o':
                o.operations = parse_operations(optarg);
                break;
            case 'r':
                orphan_s = (unsigned)parse_number(optarg, "orphan", 1);
                break;
            case 'h':
                fputs(kUsage, stdout);
                exit(0);
            case 'V':
                puts("mcastcoll " PACKAGE_VERSION);
                exit(0);
            default:
                fputs(kUsage, stderr);
                exit(64);
        }
    if (optind != argc || !o.mark || !o.operations || (o.operations & ALLREDUCE && o.bytes % 4)) {
        fputs(kUsage, stderr);
        exit(64);
    }
    return o;
}

// The victim dies 0 to 3 ms after this call, most likely inside an operation.
static void arm(void) {
    signal(SIGALRM, die_now);
    struct itimerval it = {.it_value = {0, 1 + (suseconds_t)(now_ns() / 1000 % 3000)}};
    setitimer(ITIMER_REAL, &it, NULL);
}

static void wrong_data(int rank, int round, const char* operation, int at, int value) {
    fprintf(stderr, "mpi_kill: rank %d: round %d: %s: element %d is %d\n", rank, round, operation, at, value);
    _exit(3);
}

static int broadcast(const struct options* o, unsigned char* buffer, int rank, int root, int round) {
    if (rank == root) memset(buffer, round & 0xff, (size_t)o->bytes);
    int rc = MPI_Bcast(buffer, o->bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int i = 0; i < o->bytes && rc == MPI_SUCCESS; i++)
        if (buffer[i] != (round & 0xff)) wrong_data(rank, round, "bcast", i, buffer[i]);
    return rc;
}

static int allreduce(const struct options* o, int* addends, int* sums, int rank, int size, int round) {
    int count = o->bytes / 4, want = size * (round % 1000) + size * (size - 1) / 2;
    for (int i = 0; i < count; i++) addends[i] = round % 1000 + rank;
    int rc = MPI_Allreduce(addends, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count && rc == MPI_SUCCESS; i++)
        if (sums[i] != want) wrong_data(rank, round, "allreduce", i, sums[i]);
    return rc;
}

// Runs each of the chosen operations once. `data` has room for two vectors.
static int one_round(const struct options* o, void* data, int rank, int size, int round) {
    int rc = MPI_SUCCESS;
    if (o->operations & BCAST) rc = broadcast(o, data, rank, round % size, round);
    if (rc == MPI_SUCCESS && o->operations & ALLREDUCE)
        rc = allreduce(o, data, (int*)data + o->bytes / 4, rank, size, round);
    if (rc == MPI_SUCCESS && o->operations & BARRIER) rc = MPI_Barrier(MPI_COMM_WORLD);
    return rc;
}

int main(int argc, char** argv) {
    struct options o = parse(argc, argv);
    mark_path = o.mark;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (o.victim < 0) o.victim = size - 1;
    if (o.victim >= size || size < 2) {
        if (rank == 0) fprintf(stderr, "mpi_kill: rank %d cannot die in a job of %d ranks\n", o.victim, size);
        MPI_Abort(MPI_COMM_WORLD, 64);
    }
    void* data = malloc(2 * (size_t)o.bytes);
    if (!data) MPI_Abort(MPI_COMM_WORLD, 64);

    int rc = MPI_SUCCESS, round = 0;
    for (; rc == MPI_SUCCESS; round++) {
        if (round == o.warmup) {
            if (rank == o.victim) {
                arm();
            } else {
                signal(SIGALRM, hang);
                alarm((unsigned)(o.within_ms / 1000 + 10));
            }
        }
        rc = one_round(&o, data, rank, size, round);
    }
    double ms = death_ms_ago();
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(rc, text, &length);
    int in_time = ms >= 0 && ms <= o.within_ms;
    printf("rank %d: error %.1f ms after the death, in round %d: %s%s\n", rank, ms, round - 1, text,
           in_time  ? ""
           : ms < 0 ? " (no rank had died)"
                    : " (too late)");
    fflush(stdout);
    // Open MPI's mpirun ends all ranks when a rank has ended without MPI_Finalize, which would wait for the
    // dead rank. So each rank waits for the reports of the other ranks; the scripts end the job after the
    // last report.
    alarm(0);
    sleep((unsigned)(o.within_ms / 1000 + 10));
    _exit(in_time ? 0 : 1);
}
