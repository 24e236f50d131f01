// A rank dies in, or just before, the first collective of the job. The call of every other rank, and further
// calls, must end with an error in bounded time. Each of these ranks reports this and exits; the caller sets
// the timeout for a hang. Exit status 0 if all checks passed.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "mpi_support.h"

typedef struct {
    uint64_t victim, after_ms, late_ms;
} Settings;

static const char kHelp[] =
    "usage: mpirun --enable-recovery ... mpi_first_death [options]\n"
    "  --victim RANK    rank that is killed [0]\n"
    "  --after MS       milliseconds from its first call to its death [0: it dies before the call]\n"
    "  --late MS        milliseconds that rank 1 computes before its first call [0]\n"
    "  --help, --version\n";

static void rest(uint64_t ms) {
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

static void* die(void* data) {
    rest(((const Settings*)data)->after_ms);
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

int main(int argc, char** argv) {
    int rank, size, code = MPI_SUCCESS, calls = 0;
    long mine = 1, sum = 0;
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static Settings settings;
    const Option options[] = {{"victim", &settings.victim, 0, 1000000, NULL, NULL},
                              {"after", &settings.after_ms, 0, 100000, NULL, NULL},
                              {"late", &settings.late_ms, 0, 100000, NULL, NULL},
                              {0}};
    parse_options(argc, argv, rank, "mpi_first_death", kHelp, options);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if ((uint64_t)rank == settings.victim) {
        if (settings.after_ms == 0) (void)kill(getpid(), SIGKILL);
        if (pthread_create(&thread, NULL, die, &settings) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == 1) rest(settings.late_ms);
    const double start = MPI_Wtime();
    while (code == MPI_SUCCESS) {
        code = MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        ++calls;
    }
    const bool again = MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
    printf("mpi_first_death: rank %d of %d: call %d code %d after %.1f s%s\n", rank, size, calls, code,
           MPI_Wtime() - start, again ? "" : ", and the next call none");
    fflush(stdout);
    _exit(again ? 0 : 1);
}
