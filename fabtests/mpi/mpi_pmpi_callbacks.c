// Programs that libmcastcoll-pmpi.so must not break: collectives in the delete callbacks of MPI_Comm_free and
// MPI_Finalize, and MPI_BOTTOM with datatypes of absolute addresses.

#include "mpi_support.h"

enum { kComms = 40, kInts = 10 };

static int g_rank, g_size, g_failures;

static void check(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "rank %d: FAILED: %s\n", g_rank, what);
    ++g_failures;
}

static void check_collectives(MPI_Comm comm, const char* where) {
    int sum = 0, word = g_rank == g_size - 1 ? 4711 : 0;
    MPI_Allreduce(&g_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Bcast(&word, 1, MPI_INT, g_size - 1, comm);
    MPI_Barrier(comm);
    check(sum == g_size * (g_size - 1) / 2 && word == 4711, where);
}

static int on_free(MPI_Comm comm, int key, void* value, void* extra) {
    (void)key, (void)value, (void)extra;
    check_collectives(comm, "collectives in a delete callback of MPI_Comm_free");
    return MPI_SUCCESS;
}

static int on_finalize(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    check_collectives(MPI_COMM_WORLD, "collectives in a delete callback of MPI_Finalize");
    return MPI_SUCCESS;
}

// Frees three communicators with a delete callback: the first was never used, the second was used before the
// callback was set, the third afterwards. Used communicators have a group.
static void check_free(void) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_free, &key, NULL);
    for (int i = 0; i < kComms; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (i % 3 == 1) MPI_Barrier(comm);
        MPI_Comm_set_attr(comm, key, NULL);
        if (i % 3 == 2) MPI_Barrier(comm);
        if (i % 2 == 0)
            MPI_Comm_free(&comm);
        else
            MPI_Comm_disconnect(&comm);
        check(comm == MPI_COMM_NULL, "the communicator is gone");
    }
    MPI_Comm_free_keyval(&key);
}

static void check_bottom(void) {
    int first[kInts] = {0}, second[kInts] = {0}, all[2 * kInts * 16] = {0}, lengths[] = {kInts, kInts};
    MPI_Aint places[2];
    MPI_Datatype both, types[] = {MPI_INT, MPI_INT};
    MPI_Get_address(first, &places[0]);
    MPI_Get_address(second, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &both);
    MPI_Type_commit(&both);
    for (int i = 0; i < kInts; ++i) first[i] = g_rank == 0 ? i : -1, second[i] = g_rank == 0 ? 100 + i : -1;
    MPI_Bcast(MPI_BOTTOM, 1, both, 0, MPI_COMM_WORLD);
    int bad = 0;
    for (int i = 0; i < kInts; ++i) bad += first[i] != i || second[i] != 100 + i;
    check(bad == 0, "a broadcast of MPI_BOTTOM");
    for (int i = 0; i < kInts; ++i) first[i] = g_rank, second[i] = -g_rank;
    MPI_Allgather(MPI_BOTTOM, 1, both, all, 2 * kInts, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < g_size; ++rank)
        for (int i = 0; i < kInts; ++i)
            bad += all[2 * kInts * rank + i] != rank || all[2 * kInts * rank + kInts + i] != -rank;
    check(bad == 0, "an allgather of MPI_BOTTOM");
    MPI_Type_free(&both);
}

int main(int argc, char** argv) {
    static const char kHelp[] = "usage: mpiexec -n 2..16 mpi_pmpi_callbacks\n";
    int key;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) leave(g_rank, 0, kHelp);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        leave(g_rank, 0, "mpi_pmpi_callbacks " MCC_VERSION "\n");
    if (argc > 1 || g_size < 2 || g_size > 16) leave(g_rank, 2, kHelp);
    // Some ranks set the callback before the first collective, the other ranks after the collective.
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, NULL);
    if (g_rank % 2 == 0) MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    check_collectives(MPI_COMM_WORLD, "collectives");
    if (g_rank % 2 == 1) MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    check_bottom();
    check_free();
    MPI_Finalize();
    printf("rank %d: %d bad\n", g_rank, g_failures);
    return g_failures == 0 ? 0 : 1;
}
