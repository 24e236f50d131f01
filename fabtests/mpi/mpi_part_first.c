// First a communicator without the last rank forms a group, then all ranks call collectives together. If the
// last rank's host shares no network with the first hosts, the first ranks must detect this although their
// endpoints are already open. A hang is a failure, too: the caller sets the timeout.

#include "mpi_support.h"

enum { kCalls = 5 };

int main(int argc, char** argv) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Group all, max;
    int rank, size;
    bool good = true;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // MPI_Comm_create_group needs no collective of MPI_COMM_WORLD.
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &(int){size - 1}, &max);
    if (rank < size - 1) MPI_Comm_create_group(MPI_COMM_WORLD, max, 0, &part);
    MPI_Group_free(&max);
    MPI_Group_free(&all);
    const MPI_Comm comms[] = {part, MPI_COMM_WORLD};
    for (int i = 0; i < 2; ++i) {
        int members, one = 1;
        if (comms[i] == MPI_COMM_NULL) continue;
        MPI_Comm_size(comms[i], &members);
        for (int call = 0; call < kCalls; ++call) {
            int sum = 0;
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
            good = good && sum == members;
        }
    }
    if (!good) printf("mpi_part_first: rank %d: wrong sums\n", rank);
    if (part != MPI_COMM_NULL) MPI_Comm_free(&part);
    MPI_Finalize();
    return good ? 0 : 1;
}
