// The component's progress thread must leave the processor to other work.
//
// First all ranks run collectives: the thread must not wake while the ranks poll. If the machine does not
// schedule a rank for longer than the thread's timeout, the rank looks away, so each such gap, as measured by
// the rank itself, permits some wakes. Then all ranks sleep: no event arrives for the provider, so the thread
// must sleep as well, and the process must use almost no processor time.
//
// The number of wakes is the kernel's count of the thread's voluntary context switches. The thread is found
// by its name.

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "mpi_support.h"

static const char kName[] = "mcc-progress";
static const char kHelp[] =
    "usage: mpirun ... mpi_progress_thread [options]\n"
    "  --collectives S  seconds of collectives [5]\n"
    "  --asleep S       seconds that all ranks sleep for then [4]\n"
    "  --help, --version\n";

typedef enum { kOperations, kGaps, kBusyWakes, kAsleepWakes, kAsleepUs, kFigures } Figure;

typedef struct {
    uint64_t collectives_s, asleep_s;
} Arguments;

static Arguments parse(int argc, char** argv, int rank) {
    Arguments arguments = {5, 4};
    const Option options[] = {{"collectives", &arguments.collectives_s, 1, 3600, NULL, NULL},
                              {"asleep", &arguments.asleep_s, 1, 3600, NULL, NULL},
                              {0}};
    parse_options(argc, argv, rank, "mpi_progress_thread", kHelp, options);
    return arguments;
}

// Finds the first line of a thread's file that begins with `field`, and returns the rest of the line.
static bool read_line(const char* task, const char* file, const char* field, char* value, int bytes) {
    char path[300];
    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
    FILE* stream = fopen(path, "r");
    bool found = false;
    while (stream != NULL && !found && fgets(value, bytes, stream) != NULL)
        found = strncmp(value, field, strlen(field)) == 0;
    if (stream != NULL) (void)fclose(stream);
    if (found) memmove(value, value + strlen(field), strlen(value) - strlen(field) + 1);
    return found;
}

// Returns how often the thread has waited (wakes + 1), or -1 without such a thread.
static long long waits(void) {
    DIR* tasks = opendir("/proc/self/task");
    long long count = -1;
    char line[128];
    for (struct dirent* task; tasks != NULL && count < 0 && (task = readdir(tasks)) != NULL;) {
        if (!read_line(task->d_name, "comm", kName, line, sizeof(line))) continue;
        if (read_line(task->d_name, "status", "voluntary_ctxt_switches:", line, sizeof(line)))
            count = strtoll(line, NULL, 10);
    }
    if (tasks != NULL) (void)closedir(tasks);
    return count;
}

static double clock_s(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Runs collectives on all ranks until rank 0's clock ends the loop.
static void run_collectives(double seconds, int rank, long long* figures) {
    static const double kGap_s = 8e-3;
    const double start = clock_s(CLOCK_MONOTONIC);
    double last = start;
    char go_on = 1;
    while (go_on) {
        double mine = rank, sum = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        const double now = clock_s(CLOCK_MONOTONIC);
        go_on = now - start < seconds;
        MPI_Bcast(&go_on, 1, MPI_CHAR, 0, MPI_COMM_WORLD);
        figures[kGaps] += now - last > kGap_s;
        figures[kOperations] += 3;
        last = now;
    }
}

int main(int argc, char** argv) {
    enum { kSettled = 10, kOfGap = 6, kAsleepPerSecond = 5, kUsPerSecond = 5000 };
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Arguments arguments = parse(argc, argv, rank);
    long long figures[kFigures] = {0}, worst[kFigures];
    MPI_Barrier(MPI_COMM_WORLD);

    const long long before = waits();
    run_collectives((double)arguments.collectives_s, rank, figures);
    figures[kBusyWakes] = waits() - before;
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(200000);  // the thread becomes active
    const long long first = waits();
    const double used_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    sleep((unsigned)arguments.asleep_s);
    figures[kAsleepUs] = (long long)((clock_s(CLOCK_PROCESS_CPUTIME_ID) - used_s) * 1e6);
    figures[kAsleepWakes] = waits() - first;

    const bool excused = figures[kBusyWakes] <= kSettled + kOfGap * figures[kGaps];
    int good = before >= 0 && excused &&
               figures[kAsleepWakes] <= (long long)(kSettled + kAsleepPerSecond * arguments.asleep_s) &&
               figures[kAsleepUs] <= (long long)(kUsPerSecond * arguments.asleep_s);
    int all_good;
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Reduce(figures, worst, kFigures, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (before < 0) fprintf(stderr, "rank %d has no thread \"%s\"\n", rank, kName);
    if (!good)
        fprintf(stderr,
                "rank %d: %lld wakes and %lld gaps in %lld collectives; asleep: %lld wakes, %lld us\n", rank,
                figures[kBusyWakes], figures[kGaps], figures[kOperations], figures[kAsleepWakes],
                figures[kAsleepUs]);
    if (rank == 0)
        printf(
            "mpi_progress_thread: %d ranks: %lld checked, %d bad; at most %lld wakes and %lld gaps "
            "meanwhile; asleep for %d s at most %lld wakes, %lld us of a processor\n",
            size, worst[kOperations], !all_good, worst[kBusyWakes], worst[kGaps], (int)arguments.asleep_s,
            worst[kAsleepWakes], worst[kAsleepUs]);
    MPI_Finalize();
    return all_good ? 0 : 1;
}
