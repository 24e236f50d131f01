// Several MPI_Comm_idup active at once, on overlapping communicators and on an inter-communicator, while
// blocking collectives run on them.
//
// Open MPI finds the numbers of the new communicators with non-blocking allreduces, which it starts from
// within its progress: on each rank at a different place between the program's own collectives. A hang is a
// failure, too: the caller sets the timeout.

#include <unistd.h>

#include "mpi_support.h"

enum { kComms = 3, kBytes = 3000 };

static const char kHelp[] =
    "usage: mpirun -n 6 ... mpi_idup [options]      (4 ranks or more)\n"
    "  --count N        rounds [40]\n"
    "  --help, --version\n";

static bool use(MPI_Comm comm, uint64_t number) {
    uint8_t buffer[kBytes];
    int rank, size, one = 1, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < kBytes; ++i) buffer[i] = rank == 0 ? pattern_byte(number, (uint64_t)i) : 0xa5;
    MPI_Bcast(buffer, kBytes, MPI_BYTE, 0, comm);
    bool good = true;
    for (int i = 0; i < kBytes; ++i) good = good && buffer[i] == pattern_byte(number, (uint64_t)i);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    return good && sum == size;
}

static bool round_is_good(uint64_t number, int rank, const MPI_Comm* comms) {
    MPI_Comm copies[kComms];
    MPI_Request requests[kComms];
    int started = 0;
    uint64_t state = number * 64 + (uint64_t)rank;
    bool good = true;
    for (int i = 0; i < kComms; ++i)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_idup(comms[i], &copies[started], &requests[started]), ++started;
    for (int i = 0; i < kComms; ++i) {
        if (comms[i] == MPI_COMM_NULL) continue;
        int flag;
        for (uint64_t polls = random_between(&state, 0, 30); polls > 0; --polls)
            MPI_Testall(started, requests, &flag, MPI_STATUSES_IGNORE);
        good = use(comms[i], number + (uint64_t)i) && good;
    }
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < started; ++i) {
        good = use(copies[i], number) && good;
        MPI_Comm_free(&copies[i]);
    }
    return good;
}

// The ranks of each side use the inter-communicator's local communicator, which Open MPI also uses for this.
static bool sides_are_good(uint64_t number, int rank, MPI_Comm sides) {
    MPI_Comm copy;
    MPI_Request request;
    uint64_t state = number * 64 + (uint64_t)rank;
    int flag, others, one = 1, sum = 0, sum_of_copy = 0;
    MPI_Comm_remote_size(sides, &others);
    MPI_Comm_idup(sides, &copy, &request);
    for (uint64_t polls = random_between(&state, 0, 30); polls > 0; --polls)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, sides);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum_of_copy, 1, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
    return sum == others && sum_of_copy == others;
}

int main(int argc, char** argv) {
    int rank, size;
    unsigned bad = 0, all_bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t count = 40;
    const Option options[] = {{"count", &count, 1, 100000, NULL, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_idup", kHelp, options);
    MPI_Comm comms[kComms] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_split(MPI_COMM_WORLD, rank < size - 2 ? 0 : MPI_UNDEFINED, rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank >= 2 ? 0 : MPI_UNDEFINED, rank, &comms[2]);
    MPI_Comm side, sides;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &sides);
    for (uint64_t i = 0; i < count; ++i) {
        bad += !round_is_good(i, rank, comms);
        bad += !sides_are_good(i, rank, sides);
    }
    MPI_Allreduce(&bad, &all_bad, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_idup: %d ranks: %llu checked, %u bad\n", size, (unsigned long long)count, all_bad);
    MPI_Finalize();
    return all_bad == 0 ? 0 : 1;
}
