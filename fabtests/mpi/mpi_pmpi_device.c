// The collectives that libmcastcoll-pmpi.so interposes, with the buffers of odd ranks on a simulated device
// (mpi_device.h). The program acts as a GPU-aware MPICH: it reports GPU support to the library, and packs and
// unpacks device buffers. Any other access to the device faults.
//
// Buffers are in host memory for calls that the library leaves to MPI, and for the maximum and minimum of
// unsigned elements, which Debian's MPICH computes wrong.

#define _GNU_SOURCE
#include <dlfcn.h>

#include "mpi_coll_cases.h"

static void* next(const char* name) {
    void* function = dlsym(RTLD_NEXT, name);
    if (function == NULL) abort();
    return function;
}

#pragma GCC visibility push(default)  // the library finds these before MPI's
int PMPIX_GPU_query_support(int gpu_type, int* is_supported) {
    *is_supported = gpu_type == MPIX_GPU_SUPPORT_CUDA;
    return MPI_SUCCESS;
}

int PMPI_Pack(const void* from, int count, MPI_Datatype type, void* to, int room, int* at, MPI_Comm comm) {
    int (*pack)(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
    *(void**)&pack = next("PMPI_Pack");
    return pack(device_alias(from), count, type, to, room, at, comm);
}

int PMPI_Unpack(const void* from, int bytes, int* at, void* to, int count, MPI_Datatype type, MPI_Comm comm) {
    int (*unpack)(const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm);
    *(void**)&unpack = next("PMPI_Unpack");
    return unpack(from, bytes, at, device_alias(to), count, type, comm);
}
#pragma GCC visibility pop

static bool is_left(const Case* c) {
    const bool order = c->drawn.op->op == MPI_MAX || c->drawn.op->op == MPI_MIN;
    return c->kind == kAllgatherv || c->kind == kReduceScatter || c->drawn.count == 0 ||
           (order && c->drawn.type->name[0] == 'u');
}

int main(int argc, char** argv) {
    enum { kRounds = 150, kMax = 64 << 10 };
    static Device device;
    MPI_Init(&argc, &argv);
    Part world = part_of(MPI_COMM_WORLD, 0);
    uint64_t state = 1, checked = 0, bad = 0, all = 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        leave(world.rank, 0, "usage: mpiexec ... mpi_pmpi_device\n");
    if (argc > 1) refuse_arguments(world.rank, "mpi_pmpi_device");
    if (!device_open(&device)) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < kRounds; ++i) {
        Case c;
        char what[200];
        const uint64_t key = next_random(&state);
        world.device = world.rank % 2 == 1 ? &device : NULL;
        case_draw(&c, &world, (Kind)(i % kKinds), key, kMax, true);
        if (is_left(&c)) {
            free(c.counts);
            continue;
        }
        case_start(&c);
        case_describe(&c, what, sizeof(what));
        ++checked;
        if (case_check(&c)) continue;
        fprintf(stderr, "rank %d, round %d: BAD %s\n", world.rank, i, what);
        ++bad;
    }
    MPI_Allreduce(&bad, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank == 0)
        printf("mpi_pmpi_device: %d ranks: %llu checked, %llu bad\n", world.size, (unsigned long long)checked,
               (unsigned long long)all);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
