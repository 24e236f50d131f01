// Checks libmcastcoll-pmpi.so when an operation fails, and when MPI calls the library from within a call of
// the library.
//
// This program defines an MPI_Comm_split and an MPI_Allreduce that use interposed collectives, as some MPI
// library might: these calls reach the library while the library opens the provider and while it agrees on a
// group.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // RTLD_NEXT
#endif
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mpi_support.h"

#define EXPORT __attribute__((visibility("default")))

enum { kTag = 7, kRounds = 8, kLarge = 16 << 20, kSpare = 4 << 20 };

static int g_rank, g_size, g_failures, g_handled, g_came_back;

static void check(bool good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: FAILED: %s\n", g_rank, what);
    ++g_failures;
}

EXPORT int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
    typedef int (*Split)(MPI_Comm, int, int, MPI_Comm*);
    Split split;
    *(void**)&split = dlsym(RTLD_NEXT, "PMPI_Comm_split");
    ++g_came_back;
    MPI_Barrier(comm);
    return split(comm, color, key, part);
}

EXPORT int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    ++g_came_back;
    const int rc = MPI_Reduce(in, out, count, type, op, 0, comm);
    return rc == MPI_SUCCESS ? MPI_Bcast(out, count, type, 0, comm) : rc;
}

// Uses two communicators. The first call on each makes MPI call the library from within the library's call.
static void check_calls_that_come_back(void) {
    for (int i = 0; i < 2; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        int sum = 0;
        MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
        check(sum == g_size * (g_size - 1) / 2, "an allreduce");
        sum = g_rank == g_size - 1 ? 4711 : 0;
        MPI_Bcast(&sum, 1, MPI_INT, g_size - 1, comm);
        check(sum == 4711, "a broadcast");
        MPI_Comm_free(&comm);
    }
    check(g_came_back > 2, "the library made a communicator and agreed on two groups");
}

static void free_it(MPI_Comm* comm, int* code, ...) {
    (void)code;
    ++g_handled;
    MPI_Comm_free(comm);
}

static MPI_Datatype make_gaps(void) {
    MPI_Datatype gaps;
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &gaps);
    MPI_Type_commit(&gaps);
    return gaps;
}

// If the members disagree about the length, they must get an error. The error handler frees the communicator,
// and with it the bounce buffers in use.
static void check_handler_that_frees(void) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Datatype gaps = make_gaps();
    uint8_t memory[400] = {0};
    const int before = g_handled;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(free_it, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    const int code = MPI_Bcast(memory, g_rank == 0 ? 100 : 200, gaps, 0, comm);
    check(g_rank == 0 || code != MPI_SUCCESS, "members that disagree about the length get an error");
    check(g_handled == before + (code != MPI_SUCCESS), "the error handler was called once");
    if (code == MPI_SUCCESS) MPI_Comm_free(&comm);
    MPI_Type_free(&gaps);
}

// Limits the memory of the process, except with the sanitizers, which need unlimited memory.
#ifndef __SANITIZE_ADDRESS__
static void set_room(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

static rlim_t pages_in_use(void) {
    unsigned long pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%lu", &pages) != 1) pages = 0;
    fclose(file);
    return pages;
}

// Packing fails on one rank for lack of memory. This rank then waits for the other ranks, which must not wait
// for this rank.
static void check_lack_of_memory(void) {
    const int poor = g_size - 1;
    MPI_Comm comm;
    MPI_Datatype gaps = make_gaps();
    uint8_t* memory = calloc(kLarge, 2);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier");
    const rlim_t pages = pages_in_use();
    check(pages > 0 && memory != NULL, "/proc/self/statm is there, and memory");
    if (g_rank == poor) set_room(pages * (rlim_t)sysconf(_SC_PAGESIZE) + kSpare);
    int code = MPI_Bcast(memory, kLarge, gaps, 0, comm), class = MPI_SUCCESS;
    if (g_rank == poor) {
        set_room(RLIM_INFINITY);
        MPI_Error_class(code, &class);
        check(class == MPI_ERR_NO_MEM, "a lack of memory is MPI_ERR_NO_MEM");
        for (int i = 0; i < poor; ++i)
            MPI_Recv(NULL, 0, MPI_BYTE, i, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        // A rank may have received its bytes before the failure: then its next call fails.
        if (code == MPI_SUCCESS) code = MPI_Barrier(comm);
        check(code != MPI_SUCCESS, "the others get an error, too");
        MPI_Send(NULL, 0, MPI_BYTE, poor, kTag, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&comm);
    MPI_Type_free(&gaps);
    free(memory);
}
#else
static void check_lack_of_memory(void) {}
#endif

int main(int argc, char** argv) {
    static const char kHelp[] = "usage: mpiexec -n 2.. mpi_pmpi_errors\n";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) leave(g_rank, 0, kHelp);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) leave(g_rank, 0, "mpi_pmpi_errors " MCC_VERSION "\n");
    if (argc > 1 || g_size < 2) leave(g_rank, 2, kHelp);
    check_calls_that_come_back();
    // The next communicator's group may get the address of the previous group, and must not inherit any
    // state.
    for (int i = 0; i < kRounds; ++i) check_handler_that_frees();
    check_lack_of_memory();
    int all = 0;
    MPI_Allreduce(&g_failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (g_rank == 0) printf("mpi_pmpi_errors: %d ranks: %s\n", g_size, all == 0 ? "ok" : "FAILED");
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
