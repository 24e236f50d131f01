// Communicators that are duplicated, used once and freed: these must not form groups, and a job without a
// group must not load libfabric.

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun ... mpi_short_lived [options]\n"
    "  --count N        communicators [200]\n"
    "  --help, --version\n";

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
    uint64_t count = 200;
    const Option options[] = {{"count", &count, 1, 1000000, NULL, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_short_lived", kHelp, options);
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
