// The last rank stops, or dies, while a group forms: the other ranks must continue in bounded time.
//
// The last rank's standard error is a full pipe, so the rank blocks where the component reports the join
// (coll_mcastcoll_verbose 2), and dies there or continues later. Enough barriers follow for the group to form
// after all. After a death, each of the other ranks reports the result of its call and exits. Exit status 0
// if all checks passed; the caller sets the timeout for a hang.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "mpi_support.h"

enum { kPipeBytes = 4096, kMaxRanks = 64 };

typedef struct {
    uint64_t barriers;
    uint64_t stop_ms;     // 0: the rank dies
    uint64_t suspend_ms;  // then all ranks are stopped for this time
    int size, processes[kMaxRanks];
    int read_end, real_stderr;
} Settings;

static const char kHelp[] =
    "usage: mpirun ... --mca coll_mcastcoll_form_after 0 --mca coll_mcastcoll_verbose 2 mpi_forming_fault "
    "[options]\n"
    "  --stop MS        the last rank stops for so long; else it dies\n"
    "  --suspend MS     and then all ranks, as a job that is suspended\n"
    "  --count N        barriers afterwards [1100]\n"
    "  --help, --version\n";

// Stops all ranks for a while, from a separate process, since the caller stops, too.
static void suspend_all(const Settings* settings) {
    const struct timespec time = {.tv_sec = (time_t)(settings->suspend_ms / 1000)};
    if (settings->suspend_ms == 0 || fork() != 0) return;
    for (int i = 0; i < settings->size; ++i) (void)kill(settings->processes[i], SIGSTOP);
    (void)nanosleep(&time, NULL);
    for (int i = 0; i < settings->size; ++i) (void)kill(settings->processes[i], SIGCONT);
    _exit(0);
}

static void* watch(void* data) {
    const Settings* settings = data;
    const uint64_t ms = settings->stop_ms > 0 ? settings->stop_ms : 300;
    char text[kPipeBytes];
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
    if (settings->stop_ms == 0) (void)kill(getpid(), SIGKILL);
    suspend_all(settings);
    (void)read(settings->read_end, text, sizeof(text));  // the initial content of the pipe
    for (ssize_t got; (got = read(settings->read_end, text, sizeof(text))) > 0;)
        (void)write(settings->real_stderr, text, (size_t)got);
    return NULL;
}

static bool lay_trap(Settings* settings) {
    int ends[2];
    char filling[kPipeBytes] = {0};
    pthread_t thread;
    if (pipe(ends) != 0 || fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes) < 0) return false;
    if (write(ends[1], filling, sizeof(filling)) != (ssize_t)sizeof(filling)) return false;
    settings->read_end = ends[0];
    settings->real_stderr = dup(STDERR_FILENO);
    return settings->real_stderr >= 0 && dup2(ends[1], STDERR_FILENO) >= 0 &&
           pthread_create(&thread, NULL, watch, settings) == 0;
}

int main(int argc, char** argv) {
    int rank, size, bad = 0;
    MPI_Comm late;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static Settings settings = {.barriers = 1100};
    const Option options[] = {{"count", &settings.barriers, 0, 1000000, NULL, NULL},
                              {"stop", &settings.stop_ms, 0, 100000, NULL, NULL},
                              {"suspend", &settings.suspend_ms, 0, 100000, NULL, NULL},
                              {0}};
    parse_options(argc, argv, rank, "mpi_forming_fault", kHelp, options);
    if (size > kMaxRanks) leave(rank, 2, "mpi_forming_fault: too many ranks\n");
    settings.size = size;
    const int self = getpid();
    MPI_Allgather(&self, 1, MPI_INT, settings.processes, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);  // forms a group without a fault, which opens the provider
    MPI_Comm_dup(MPI_COMM_WORLD, &late);
    MPI_Comm_set_name(late, "late");
    MPI_Comm_set_errhandler(late, MPI_ERRORS_RETURN);
    if (rank == size - 1 && !lay_trap(&settings)) MPI_Abort(MPI_COMM_WORLD, 3);
    const double start = MPI_Wtime();
    const int code = MPI_Barrier(late);
    if (settings.stop_ms == 0) {
        printf("mpi_forming_fault: rank %d of %d: code %d after %.1f s\n", rank, size, code,
               MPI_Wtime() - start);
        fflush(stdout);
        _exit(code == MPI_SUCCESS);
    }
    bad += code != MPI_SUCCESS;
    for (uint64_t i = 0; i < settings.barriers; ++i) bad += MPI_Barrier(late) != MPI_SUCCESS;
    if (rank == 0)
        printf("mpi_forming_fault: %d ranks: %llu checked, %d bad\n", size,
               (unsigned long long)settings.barriers, bad);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
