// A group forms while the 30,000th or a later non-blocking collective of a communicator is active. libnbc
// gives each such collective the next lower tag. A message of the component with a tag of this range would be
// received by a collective. Every element is verified. Exit status 0 if all elements are right.

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun ... --mca coll_mcastcoll_form_after 0 mpi_many_nonblocking [options]\n"
    "  --first N        so many barriers come before, on the first communicator [30073]\n"
    "  --count N        communicators; on each further one two barriers more come before [1]\n"
    "  --help, --version\n";

enum { kElements = 1 << 20 };

static long long count_wrong(MPI_Comm comm, int rank, int size) {
    double *in = malloc(kElements * sizeof(*in)), *out = malloc(kElements * sizeof(*out));
    MPI_Request request;
    long long wrong = 0;
    if (in == NULL || out == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int i = 0; i < kElements; ++i) in[i] = i + rank;
    MPI_Iallreduce(in, out, kElements, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < kElements; ++i) wrong += out[i] != (double)size * i + size * (size - 1) / 2;
    free(in);
    free(out);
    return wrong;
}

int main(int argc, char** argv) {
    int rank, size;
    uint64_t first = 30073, count = 1;
    long long wrong = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Option options[] = {
        {"first", &first, 0, 1000000, NULL, NULL}, {"count", &count, 1, 1000, NULL, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_many_nonblocking", kHelp, options);
    for (uint64_t i = 0; i < count; ++i) {
        MPI_Comm comm;
        MPI_Request request;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (uint64_t n = 0; n < first + 2 * i; ++n) {
            MPI_Ibarrier(comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        wrong += count_wrong(comm, rank, size);
        MPI_Comm_free(&comm);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_many_nonblocking: %d ranks: %llu checked, %lld bad\n", size, (unsigned long long)count,
               all);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
