// Calls that the coll component must leave to Open MPI or refuse, and edge cases: inter-communicators, tiny
// communicators, empty messages, sizes around the thresholds, invalid roots, two threads on two
// communicators, communicators that are never freed.
//
// The results must be right under any parameters, whichever side serves. Exit status 0 only if all checks
// passed.

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "mpi_support.h"

enum { kThreadRounds = 50, kLargest = 300000 };

// Globals are fine in a test; the threads below only read the first two.
static int g_rank, g_size, g_failures;

static void check(bool good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: FAILED: %s\n", g_rank, what);
    ++g_failures;
}

static bool bcast_right(MPI_Comm comm, int bytes, int root, uint64_t operation) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    uint8_t* memory = calloc(1, (size_t)bytes + 1);
    if (memory == NULL) return false;
    for (int i = 0; rank == root && i < bytes; ++i) memory[i] = pattern_byte(operation, (uint64_t)i);
    bool good = MPI_Bcast(memory, bytes, MPI_BYTE, root, comm) == MPI_SUCCESS;
    for (int i = 0; good && i < bytes; ++i) good = memory[i] == pattern_byte(operation, (uint64_t)i);
    good = good && memory[bytes] == 0;
    free(memory);
    return good;
}

static void check_small(void) {
    check(bcast_right(MPI_COMM_SELF, 100, 0, 1), "broadcast on MPI_COMM_SELF");
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, g_rank / 2, g_rank, &pair);
    check(bcast_right(pair, 1000, 0, 2), "broadcast on a pair");
    MPI_Barrier(pair);
    MPI_Comm_free(&pair);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, g_rank == 0 ? MPI_UNDEFINED : 1, g_rank, &part);
    if (part != MPI_COMM_NULL) {
        check(bcast_right(part, 1000, 0, 3), "broadcast without rank 0");
        MPI_Comm_free(&part);
    }
}

static void check_sizes(void) {
    check(MPI_Bcast(NULL, 0, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS, "empty broadcast");
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    int kept = 42;
    check(MPI_Bcast(&kept, 5, nothing, g_size - 1, MPI_COMM_WORLD) == MPI_SUCCESS && kept == 42,
          "datatype of no bytes");
    MPI_Type_free(&nothing);
    static const int kSizes[] = {1, 63, 64, 65, 1023, 1024, 1025, 65535, 65536, 65537, kLargest};
    for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
        for (int root = 0; root < g_size; ++root) {
            check(bcast_right(MPI_COMM_WORLD, kSizes[i], root, i * 100 + (uint64_t)root),
                  "broadcast around a threshold");
        }
    }
}

static void check_errors(void) {
    int code = MPI_Bcast(&g_size, 1, MPI_INT, g_size, MPI_COMM_WORLD), class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_ROOT, "a root out of range is MPI_ERR_ROOT");
    code = MPI_Bcast(&g_size, -1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_COUNT, "a negative count is MPI_ERR_COUNT");
    check(bcast_right(MPI_COMM_WORLD, 100, 0, 9), "broadcast after refused ones");
}

static void check_inter(void) {
    if (g_size < 2) return;
    MPI_Comm half, inter;
    const int side = g_rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, g_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    int rank, value = 0;
    MPI_Comm_rank(half, &rank);
    const int root = side == 0 ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    if (root == MPI_ROOT) value = 4711;
    MPI_Bcast(&value, 1, MPI_INT, root, inter);
    check(side == 0 || value == 4711, "broadcast over an inter-communicator");
    MPI_Barrier(inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

typedef struct {
    MPI_Comm comm;
    uint64_t seed;
    int bad;
} Work;

static void* work(void* argument) {
    Work* w = argument;
    for (int i = 0; i < kThreadRounds; ++i) {
        w->bad += !bcast_right(w->comm, 1 + i * 97, i % g_size, w->seed + (uint64_t)i);
        if (i % 5 == 0) MPI_Barrier(w->comm);
    }
    return NULL;
}

static void check_threads(int provided) {
    if (provided < MPI_THREAD_MULTIPLE) {
        if (g_rank == 0) printf("threads not checked: no MPI_THREAD_MULTIPLE here\n");
        return;
    }
    Work works[2] = {{.seed = 1000}, {.seed = 2000}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
    for (int i = 0; i < 2; ++i) {
        if (pthread_create(&threads[i], NULL, work, &works[i]) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; ++i) {
        check(works[i].bad == 0, "broadcasts of two threads");
        MPI_Comm_free(&works[i].comm);
    }
}

// A rank in another MPI call must not block its own progress, nor a broadcast of the other ranks.
static void check_away(void) {
    if (g_size < 3) return;
    MPI_Request request;
    int token = g_rank;
    const int next = (g_rank + 1) % g_size, previous = (g_rank + g_size - 1) % g_size;
    MPI_Irecv(&token, 1, MPI_INT, previous, 6, MPI_COMM_WORLD, &request);
    check(bcast_right(MPI_COMM_WORLD, 5000, 1, 77), "broadcast with a receive outstanding");
    if (g_rank == 2) usleep(20000);
    MPI_Send(&g_rank, 1, MPI_INT, next, 6, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(token == previous, "point-to-point beside a broadcast");
}

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const Option none = {0};
    parse_options(argc, argv, g_rank, "mpi_fallthrough",
                  "usage: mpirun -n N mpi_fallthrough [--help|--version]\n", &none);
    check_small();
    check_sizes();
    check_errors();
    check_inter();
    check_threads(provided);
    check_away();

    MPI_Comm left_behind;  // never freed: MPI_Finalize must handle it
    MPI_Comm_dup(MPI_COMM_WORLD, &left_behind);
    check(bcast_right(left_behind, 10, 0, 5), "broadcast on a communicator that is never freed");

    int all = 0;
    MPI_Allreduce(&g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (g_rank == 0) printf("mpi_fallthrough: %d ranks: %s\n", g_size, all == 0 ? "ok" : "FAILED");
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
