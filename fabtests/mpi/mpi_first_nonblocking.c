// Communicators whose first collective is a non-blocking one, which must not wait for other ranks.
//
// In every round rank 0 starts a broadcast and an allreduce on a new communicator and only then sends what
// the others wait for before they start theirs. Some communicators are freed before their collectives are
// complete, some are duplicated, for which Open MPI starts collectives from within its own progress. A hang
// is the failure: the caller sets the time. For coll_mcastcoll_nonblocking_join 1: Open MPI 4.1's own
// non-blocking collectives crash when their communicator is freed.

#include <getopt.h>
#include <stdbool.h>

#include "mpi_support.h"

enum { kBytes = 3000, kTag = 3 };

static const char kHelp[] =
    "usage: mpirun ... mpi_first_nonblocking [options]\n"
    "  --count N        rounds [40]\n"
    "  --help, --version\n";

static uint64_t parse(int argc, char** argv, int rank) {
    static const struct option kLong[] = {
        {"count", 1, NULL, 'n'}, {"help", 0, NULL, 'h'}, {"version", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    uint64_t count = 40;
    bool bad = false;
    opterr = rank == 0;
    for (int c; (c = getopt_long(argc, argv, "", kLong, NULL)) != -1;) {
        if (c == 'n') bad |= parse_size(optarg, &count) != 0 || count == 0 || count > 100000;
        if (c == 'h') leave(rank, 0, kHelp);
        if (c == 'v') leave(rank, 0, "mpi_first_nonblocking " MCC_VERSION "\n");
        if (c == '?') bad = true;
    }
    if (bad || optind != argc) leave(rank, 2, "mpi_first_nonblocking: bad arguments, see --help\n");
    return count;
}

static void duplicate(MPI_Comm comm, int size, bool* good) {
    MPI_Comm copy;
    int one = 1, sum = 0;
    MPI_Comm_dup(comm, &copy);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
    *good = *good && sum == size;
}

static bool round_is_good(uint64_t number, int rank, int size) {
    uint8_t buffer[kBytes];
    int one = 1, sum = 0, go = 0;
    MPI_Comm comm;
    MPI_Request requests[2];
    for (int i = 0; i < kBytes; ++i) buffer[i] = rank == 0 ? pattern_byte(number, (uint64_t)i) : 0xa5;
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
    if (rank != 0) MPI_Recv(&go, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibcast(buffer, kBytes, MPI_BYTE, 0, comm, &requests[0]);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    for (int to = 1; rank == 0 && to < size; ++to) MPI_Ssend(&go, 1, MPI_INT, to, kTag, MPI_COMM_WORLD);
    bool good = true;
    if (number % 3 == 0) duplicate(comm, size, &good);
    if (number % 3 == 1) MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kBytes; ++i) good = good && buffer[i] == pattern_byte(number, (uint64_t)i);
    if (number % 3 != 1) MPI_Comm_free(&comm);
    return good && sum == size;
}

int main(int argc, char** argv) {
    int rank, size, provided;
    unsigned bad = 0, all_bad = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const uint64_t count = parse(argc, argv, rank);
    for (uint64_t i = 0; i < count; ++i) bad += !round_is_good(i, rank, size);
    MPI_Allreduce(&bad, &all_bad, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_first_nonblocking: %d ranks: %llu checked, %u bad\n", size, (unsigned long long)count,
               all_bad);
    MPI_Finalize();
    return all_bad == 0 ? 0 : 1;
}
