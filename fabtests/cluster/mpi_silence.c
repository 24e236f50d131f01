// mpi_silence -- collectives while the network is silent for some seconds.
//
// A silence must delay a job and do no other harm. The script mpi_silence.sh makes the silence. Script and
// ranks communicate by files, which all hosts of a virtual cluster share: ranks create MARK.ready after their
// warm-up, the script MARK.on when the silence has begun and MARK.over when it has ended. Every byte of every
// operation is checked. Rank 0 prints how long the silence delayed the ranks.
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "../mpi/mpi_support.h"

enum { kBytes = 65536, kWarm = 50, kName = 4096 };

static int g_rank, g_size;
static char g_mark[kName];

static void check(bool good, const char* what) {
    if (good) return;
    fprintf(stderr, "mpi_silence: rank %d: wrong data from %s\n", g_rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// Returns the time in seconds; also works after MPI_Finalize.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool there(const char* suffix) {
    char name[kName + 16];
    snprintf(name, sizeof(name), "%s.%s", g_mark, suffix);
    return 0 == access(name, F_OK);
}

static void await(const char* suffix) {
    const struct timespec pause = {0, 5 * 1000 * 1000};
    while (!there(suffix)) nanosleep(&pause, NULL);
}

static void say_ready(void) {
    char name[kName + 16];
    snprintf(name, sizeof(name), "%s.ready", g_mark);
    FILE* file = 0 == g_rank ? fopen(name, "w") : NULL;
    if (NULL != file) fclose(file);
}

// Runs one operation of each kind, with a different root each time.
static void operate(MPI_Comm comm, uint64_t number) {
    static uint8_t buffer[kBytes];
    const int root = (int)(number % (uint64_t)g_size);
    for (size_t i = 0; i < kBytes; ++i) buffer[i] = g_rank == root ? pattern_byte(number, i) : 0;
    MPI_Bcast(buffer, kBytes, MPI_BYTE, root, comm);
    for (size_t i = 0; i < kBytes; ++i) check(pattern_byte(number, i) == buffer[i], "MPI_Bcast");
    long own = (long)number + g_rank, sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, comm);
    check(g_size * (long)number + (long)g_size * (g_size - 1) / 2 == sum, "MPI_Allreduce");
    MPI_Barrier(comm);
}

// Returns rank 0's decision on all ranks, so that they stop together.
static bool goes_on(bool again) {
    int word = again;
    MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return 0 != word;
}

// Repeats `round` while the silence begins and ends; returns the longest round.
static double longest_round(void (*round)(uint64_t), uint64_t warm) {
    double longest = 0, last = 0;
    bool more = true;
    for (uint64_t number = 0; more; ++number) {
        if (warm == number) {
            say_ready();
            last = now();
        }
        round(number);
        more = goes_on(!there("over"));
        if (number < warm) continue;
        const double end = now();
        if (end - last > longest) longest = end - last;
        last = end;
    }
    return longest;
}

static void one_operation(uint64_t number) {
    operate(MPI_COMM_WORLD, number);
}

static double in_operations(void) {
    return longest_round(one_operation, kWarm);
}

// Creates, uses and frees a communicator.
static void one_communicator(uint64_t number) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    operate(comm, number);
    MPI_Comm_free(&comm);
}

static double in_joins(void) {
    return longest_round(one_communicator, 2);
}

// Ranks compute when the silence begins, and meet in an operation during it.
static double in_between(void) {
    say_ready();
    await("on");
    const double start = now();
    operate(MPI_COMM_WORLD, 1);
    return now() - start;
}

// The first collective of the job, which connects the ranks and makes the first group.
static double in_first(void) {
    say_ready();
    await("on");
    const double start = now();
    operate(MPI_COMM_WORLD, 1);
    return now() - start;
}

// MPI_Comm_free and MPI_Finalize during the silence; main() calls the latter.
static double in_close(void) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    operate(comm, 2);
    say_ready();
    await("on");
    const double start = now();
    MPI_Comm_free(&comm);
    return now() - start;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        double (*run)(void);
    } kPhases[] = {{"operation", in_operations},
                   {"join", in_joins},
                   {"between", in_between},
                   {"close", in_close},
                   {"first", in_first}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    const size_t phases = sizeof(kPhases) / sizeof(kPhases[0]);
    size_t phase = 0;
    while (3 == argc && phase < phases && 0 != strcmp(argv[1], kPhases[phase].name)) ++phase;
    if (3 != argc || phase == phases)
        leave(g_rank, 2, "usage: mpi_silence operation|join|between|close|first MARK\n");
    snprintf(g_mark, sizeof(g_mark), "%s", argv[2]);
    for (uint64_t number = 0; in_first != kPhases[phase].run && number < kWarm; ++number)
        operate(MPI_COMM_WORLD, number);
    const double held = kPhases[phase].run();
    double longest = held;
    if (in_close != kPhases[phase].run)
        MPI_Reduce(&held, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    const double start = now();
    MPI_Finalize();
    if (in_close == kPhases[phase].run) longest += now() - start;
    if (0 == g_rank) printf("mpi_silence: all right, held up for %.2f s\n", longest);
    return 0;
}
