// Each rank puts a number into every window between two fences and checks its own window after the second
// fence. Counts numbers that have not arrived. Open MPI's osc/rdma relies on Open MPI's barrier here. Prints
// the sum over all ranks.

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun ... mpi_windows [options]\n"
    "  --count N        pairs of fences [300]\n"
    "  --help, --version\n";

int main(int argc, char** argv) {
    int rank, size;
    uint64_t count = 300;
    long early = 0, all = 0;
    MPI_Win window;
    int* own;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Option options[] = {{"count", &count, 1, 1000000, NULL, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_windows", kHelp, options);
    MPI_Win_allocate((MPI_Aint)((size_t)size * sizeof(int)), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own,
                     &window);
    for (int round = 1; round <= (int)count; ++round) {
        bool arrived = true;
        MPI_Win_fence(0, window);
        for (int to = 0; to < size; ++to) MPI_Put(&round, 1, MPI_INT, to, rank, 1, MPI_INT, window);
        MPI_Win_fence(0, window);
        for (int from = 0; from < size; ++from) arrived = arrived && ((volatile int*)own)[from] == round;
        early += !arrived;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(&early, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_windows: %llu fences, %ld early\n", (unsigned long long)count * (unsigned)size, all);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
