// A rank in a blocking send, or outside MPI, must still answer NAKs (requests for lost data) of a broadcast.
//
// In every round rank 0 broadcasts, then all other ranks send a synchronous message to the last rank, which
// receives these messages after the broadcast. If the last rank has lost the broadcast, every possible
// supplier is in such a send, where the pml cm waits without Open MPI's progress. With --board, all ranks
// increment a counter in a file instead, and wait outside MPI until all ranks have done so: then no supplier
// makes MPI calls. A failure is a hang: the caller sets the timeout.

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_support.h"

enum { kBytes = 2000, kTag = 3 };

static const char kHelp[] =
    "usage: mpirun ... mpi_blocked_send [options]\n"
    "  --count N        rounds [300]\n"
    "  --board FILE     wait for each other in this new file, outside MPI; all ranks under one kernel\n"
    "  --help, --version\n";

typedef _Atomic uint64_t Board;

static Board* open_board(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(Board)) != 0) return NULL;
    void* at = mmap(NULL, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return at == MAP_FAILED ? NULL : at;
}

static void wait_outside(Board* arrived, uint64_t all) {
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < all) (void)usleep(50);
}

static bool round_is_good(uint64_t number, int rank, int size, Board* board) {
    uint8_t buffer[kBytes];
    bool good = true;
    for (int i = 0; i < kBytes; ++i) buffer[i] = rank == 0 ? pattern_byte(number, (uint64_t)i) : 0xa5;
    MPI_Bcast(buffer, kBytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < kBytes; ++i) good = good && buffer[i] == pattern_byte(number, (uint64_t)i);
    if (board != NULL) {
        wait_outside(board, (number + 1) * (uint64_t)size);
        return good;
    }
    if (rank != size - 1) {
        MPI_Ssend(buffer, kBytes, MPI_BYTE, size - 1, kTag, MPI_COMM_WORLD);
        return good;
    }
    for (int from = 0; from < size - 1; ++from) {
        memset(buffer, 0xa5, sizeof(buffer));
        MPI_Recv(buffer, kBytes, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < kBytes; ++i) good = good && buffer[i] == pattern_byte(number, (uint64_t)i);
    }
    return good;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    unsigned bad = 0, all_bad = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t count = 300;
    const char* path = NULL;
    const Option options[] = {
        {"count", &count, 1, 1000000, NULL, NULL}, {"board", NULL, 0, 0, &path, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_blocked_send", kHelp, options);
    Board* const board = path != NULL ? open_board(path) : NULL;
    if (path != NULL && board == NULL) {
        fprintf(stderr, "mpi_blocked_send: cannot use %s\n", path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (uint64_t i = 0; i < count; ++i) bad += !round_is_good(i, rank, size, board);
    MPI_Allreduce(&bad, &all_bad, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_blocked_send: %d ranks: %llu checked, %u bad\n", size, (unsigned long long)count,
               all_bad);
    MPI_Finalize();
    return all_bad == 0 ? 0 : 1;
}
