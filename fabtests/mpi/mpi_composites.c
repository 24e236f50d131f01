// Collectives that Open MPI builds from other collectives of the communicator (uneven allgatherv of gatherv
// and bcast, ...), while a rank dies: no call may return success with wrong bytes. After the first error
// every later collective of the communicator must return an error at once, whether Open MPI or the component
// would serve it.
//
// A call left to Open MPI when the rank dies may wait forever, as without coll/mcastcoll. A rank with such a
// long wait reports this and exits. Exit status 0 if all checks passed.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun --enable-recovery ... mpi_composites [options]\n"
    "  --victim RANK    rank that is killed [0]\n"
    "  --before CALL    call that it is killed before: 0 is a barrier, 1 to 5 are composites [0]\n"
    "  --fatal          errors end the job\n"
    "  --help, --version\n";

enum { kRound = 20, kMax = 64, kTimeoutS = 2, kMaxTimeoutS = 40, kCalls = 6 };

static int rank, size;
static atomic_long calls, errors, wrongs;
static int counts[kMax], places[kMax], total;

static int element(long call, int from, int at) {
    return (int)(call * 1000 + from * 100 + at);
}

static void check(const char* name, int code, const int* got, const int* wanted, int number) {
    int bad = 0;
    atomic_fetch_add(&calls, 1);
    for (int i = 0; i < number; ++i) bad += got[i] != wanted[i];
    if (code != MPI_SUCCESS) {
        atomic_fetch_add(&errors, 1);
    } else if (bad != 0) {
        atomic_fetch_add(&wrongs, 1);
        printf("mpi_composites: rank %d: %s: success, and %d of %d elements are wrong\n", rank, name, bad,
               number);
        fflush(stdout);
    }
}

// Each function makes one call and compares the result.
static int uneven_allgatherv(long call) {
    int in[kMax], out[kMax * 2], wanted[kMax * 2];
    memset(out, 0x55, sizeof(out));
    for (int i = 0; i < counts[rank]; ++i) in[i] = element(call, rank, i);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < counts[r]; ++i) wanted[places[r] + i] = element(call, r, i);
    const int code = MPI_Allgatherv(in, counts[rank], MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
    check("allgatherv", code, out, wanted, total);
    return code;
}

static int allgather(long call) {
    int in = element(call, rank, 0), out[kMax], wanted[kMax];
    memset(out, 0x55, sizeof(out));
    for (int r = 0; r < size; ++r) wanted[r] = element(call, r, 0);
    const int code = MPI_Allgather(&in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    check("allgather", code, out, wanted, size);
    return code;
}

static void sums(long call, int* in, int* wanted, int number) {
    for (int i = 0; i < number; ++i) {
        in[i] = element(call, rank, i);
        wanted[i] = 0;
        for (int r = 0; r < size; ++r) wanted[i] += element(call, r, i);
    }
}

static int allreduce(long call) {
    int in[kMax], out[kMax], wanted[kMax];
    sums(call, in, wanted, kMax);
    memset(out, 0x55, sizeof(out));
    const int code = MPI_Allreduce(in, out, kMax, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("allreduce", code, out, wanted, kMax);
    return code;
}

static int reduce_scatter(long call) {
    int in[kMax * 2], out[kMax * 2], wanted[kMax * 2];
    sums(call, in, wanted, total);
    memset(out, 0x55, sizeof(out));
    const int code = MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("reduce_scatter", code, out, wanted + places[rank], counts[rank]);
    return code;
}

static int reduce_scatter_block(long call) {
    int in[kMax], out = 0x55, wanted[kMax];
    sums(call, in, wanted, size);
    const int code = MPI_Reduce_scatter_block(in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check("reduce_scatter_block", code, &out, wanted + rank, 1);
    return code;
}

static int barrier(long call) {
    (void)call;
    const int code = MPI_Barrier(MPI_COMM_WORLD);
    check("barrier", code, NULL, NULL, 0);
    return code;
}

static int (*const kRun[kCalls])(long) = {barrier,   uneven_allgatherv, allgather,
                                          allreduce, reduce_scatter,    reduce_scatter_block};

// A thread that ends the rank when it waits too long: a barrier must end with an error, late on a slow
// machine; a call that is left to Open MPI may wait forever.
static void* watch(void* before) {
    const int timeout_s = *(const uint64_t*)before == 0 ? kMaxTimeoutS : kTimeoutS;
    long seen = -1;
    for (;;) {
        const long now = atomic_load(&calls);
        if (now == seen) break;
        seen = now;
        const struct timespec time = {.tv_sec = timeout_s};
        (void)nanosleep(&time, NULL);
    }
    printf("mpi_composites: rank %d waits as without us: %ld wrong, %ld errors\n", rank, atomic_load(&wrongs),
           atomic_load(&errors));
    fflush(stdout);
    _exit(atomic_load(&wrongs) != 0);
}

static int succeeded(const char* name, int code) {
    atomic_fetch_add(&calls, 1);
    if (code != MPI_SUCCESS) return 0;
    printf("mpi_composites: rank %d: %s: success, after an error\n", rank, name);
    return 1;
}

// Every call after the first error must fail.
static int refuses_everything(void) {
    int in = 0, out = 0, good = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm other = MPI_COMM_NULL;
    for (int call = 0; call < kCalls; ++call) good += succeeded("a further call", kRun[call](0));
    int code = MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    good += succeeded("iallreduce", code);
    good += succeeded("comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &other));
    return good;
}

int main(int argc, char** argv) {
    uint64_t victim = 0, before = 0;
    bool fatal = false;
    pthread_t thread;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Option options[] = {{"victim", &victim, 0, kMax, NULL, NULL},
                              {"before", &before, 0, kCalls - 1, NULL, NULL},
                              {.name = "fatal", .given = &fatal},
                              {0}};
    parse_options(argc, argv, rank, "mpi_composites", kHelp, options);
    if (size > kMax / 8) leave(rank, 2, "mpi_composites: too many ranks\n");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, fatal ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN);
    for (int r = 0; r < size; ++r) {
        counts[r] = r % 2 != 0 ? 2 : 20;
        places[r] = total;
        total += counts[r];
    }
    for (long round = 0; atomic_load(&errors) == 0; ++round) {
        for (int call = 0; call < kCalls && atomic_load(&errors) == 0; ++call) {
            if (round == kRound && (uint64_t)call == before) {
                if ((uint64_t)rank == victim) (void)kill(getpid(), SIGKILL);
                if (pthread_create(&thread, NULL, watch, &before) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
            }
            (void)kRun[call](round);
        }
    }
    const int good = refuses_everything();
    printf("mpi_composites: rank %d ends: %ld wrong, %ld errors, %d successes after the first\n", rank,
           atomic_load(&wrongs), atomic_load(&errors), good);
    fflush(stdout);
    _exit(good != 0 || atomic_load(&wrongs) != 0);
}
