// Communicators that are duplicated, used once and freed: no group may form for them, and a job that forms
// none may not load libfabric.

#include <getopt.h>
#include <stdbool.h>

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun ... mpi_short_lived [options]\n"
    "  --count N        communicators [200]\n"
    "  --help, --version\n";

static uint64_t parse(int argc, char** argv, int rank) {
    static const struct option kLong[] = {
        {"count", 1, NULL, 'n'}, {"help", 0, NULL, 'h'}, {"version", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    uint64_t count = 200;
    bool bad = false;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        if (c == 'n') bad |= parse_size(optarg, &count) != 0 || count == 0 || count > 1000000;
        if (c == 'h') leave(rank, 0, kHelp);
        if (c == 'v') leave(rank, 0, "mpi_short_lived " MCC_VERSION "\n");
        if (c == '?') bad = true;
    }
    if (bad || optind != argc) leave(rank, 2, "mpi_short_lived: bad arguments, see --help\n");
    return count;
}

static bool is_mapped(const char* library) {
    char line[4096];
    bool found = false;
    FILE* maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) return true;
    while (fgets(line, sizeof(line), maps) != NULL) found = found || strstr(line, library) != NULL;
    (void)fclose(maps);
    return found;
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const uint64_t count = parse(argc, argv, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (uint64_t i = 0; i < count; ++i) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
    const double us = (MPI_Wtime() - start) * 1e6 / (double)count;
    int loaded = is_mapped("libfabric"), loaded_ranks = 0;
    MPI_Reduce(&loaded, &loaded_ranks, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_short_lived: %d ranks: %llu communicators, %.1f us each, libfabric loaded in %d\n", size,
               (unsigned long long)count, us, loaded_ranks);
    MPI_Finalize();
    return 0;
}
