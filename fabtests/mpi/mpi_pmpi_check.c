// Compares every collective that libmcastcoll-pmpi.so interposes with MPI's own. Each call is made twice on
// equal data, through MPI_... and through PMPI_..., and every byte of the buffers is compared, including the
// bytes that must not change.
//
// The seed determines operation, elements, operator, counts, root, in place or not, on the world and on parts
// of it. Each rank draws for itself, since these may differ between members: the message's layout
// (contiguous, with gaps, with pairs in reverse order), and whether to use the large-count call of MPI 4.
// Values are small integers, so that reductions are exact in any order.
//
// Errors of MPICH 4.0.2 itself are avoided: MIN and MAX of unsigned elements, which it compares as signed;
// and MPI_Reduce on one host in place with a nonzero root, or without a result buffer on ranks other than the
// root, which crashes.

#include "mpi_pmpi_calls.h"

enum { kPartEvery = 40, kTag = 3, kRendezvous = 1 << 20 };

static Call draw(const Part* part, uint64_t key, size_t max) {
    const struct {
        MPI_Datatype type;
        size_t width;
        unsigned operators;  // bits of kOperators
    } kTypes[] = {{MPI_INT, sizeof(int), 0x3f},
                  {MPI_DOUBLE, sizeof(double), 0x07},
                  {MPI_FLOAT, sizeof(float), 0x07},
                  {MPI_UNSIGNED_SHORT, 2, 0x39},
                  {MPI_BYTE, 1, 0x10},
                  {MPI_LONG, sizeof(long), 0x3f},
                  {MPI_C_DOUBLE_COMPLEX, 2 * sizeof(double), 0x01},
                  {MPI_INT8_T, 1, 0x36}};
    const MPI_Op kOperators[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_LOR, MPI_BXOR, MPI_BAND};
    uint64_t state = key, own = key + 77 * (uint64_t)part->rank;
    Call p = {.key = next_random(&state)};
    p.operation = (Operation)(next_random(&state) % kOperations);
    const size_t type = next_random(&state) % (sizeof(kTypes) / sizeof(kTypes[0]));
    p.type = kTypes[type].type;
    p.width = kTypes[type].width;
    size_t op;
    do op = next_random(&state) % (sizeof(kOperators) / sizeof(kOperators[0]));
    while (!(kTypes[type].operators >> op & 1));
    p.op = kOperators[op];
    uint64_t limit = 2;  // about equally many counts of each order of magnitude
    while (limit < max / p.width && next_random(&state) % 6 != 0) limit *= 2;
    p.count = 2 * random_between(&state, 0, limit / 2);
    p.shape = (Shape)(next_random(&state) % kDrawnShapes);
    p.root = (int)random_between(&state, 0, (uint64_t)part->size - 1);
    p.in_place = p.operation != kBcast && next_random(&state) % 3 == 0;
    p.large = next_random(&own) % 4 == 0;
    if (p.operation == kReduce && p.root != 0) p.in_place = false;
    if (pmpi_is_reduction(p.operation)) return p;
    p.in = next_random(&own) % 2 ? kPlain : (Layout)(next_random(&own) % kLayouts);
    uint64_t* drawn_by = p.operation == kAllgatherv ? &state : &own;
    p.out = next_random(drawn_by) % 2 ? kPlain : (Layout)(next_random(drawn_by) % kLayouts);
    return p;
}

// A broadcast whose root first receives a large message from a member already inside the broadcast: MPI must
// make progress during the broadcast.
static bool check_progress(const Part* part) {
    if (part->size < 2) return true;
    static uint8_t message[kRendezvous];
    MPI_Request request;
    int value = part->rank == 0 ? 4711 : 0;
    MPI_Barrier(part->comm);  // the group has formed
    if (part->rank == 1) MPI_Isend(message, kRendezvous, MPI_BYTE, 0, kTag, part->comm, &request);
    if (part->rank == 0) MPI_Recv(message, kRendezvous, MPI_BYTE, 1, kTag, part->comm, MPI_STATUS_IGNORE);
    MPI_Bcast(&value, 1, MPI_INT, 0, part->comm);
    if (part->rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
    return value == 4711;
}

int main(int argc, char** argv) {
    static const char kHelp[] =
        "usage: mpiexec ... mpi_pmpi_check [OPERATIONS [BYTES [SEED]]]\n"
        "  OPERATIONS  how many [300];  BYTES  of a block at most [64K];  SEED  of the drawn operations [1]\n"
        "Numbers take K, M and G.\n";
    uint64_t numbers[3] = {300, 64 << 10, 1}, failures = 0, all = 0;
    bool bad = argc > 4;
    MPI_Init(&argc, &argv);
    const Part world = pmpi_make_part(MPI_COMM_WORLD);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) leave(world.rank, 0, kHelp);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        leave(world.rank, 0, "mpi_pmpi_check " MCC_VERSION "\n");
    for (int i = 1; i < argc && !bad; ++i) bad = parse_size(argv[i], &numbers[i - 1]) != 0;
    if (bad || numbers[1] < 32 || numbers[1] > 1 << 24 || world.size > kMaxMembers) {
        leave(world.rank, 2, "mpi_pmpi_check: up to three numbers, BYTES from 32 to 16M; see --help\n");
    }
    Part part = {.comm = MPI_COMM_NULL};
    uint64_t state = numbers[2];
    failures += !check_progress(&world);
    for (uint64_t i = 0; i < numbers[0]; ++i) {
        const uint64_t key = next_random(&state);
        if (i % kPartEvery == 0) {
            if (part.comm != MPI_COMM_NULL) MPI_Comm_free(&part.comm);
            MPI_Comm_split(MPI_COMM_WORLD, (int)(key % 2) * (world.rank % 2), -world.rank, &part.comm);
            part = pmpi_make_part(part.comm);
        }
        const Part* where = key % 4 == 0 ? &part : &world;
        const Call drawn = draw(where, key, numbers[1]);
        if (pmpi_check_call(&drawn, where)) continue;
        pmpi_print_call(&drawn, where);
        ++failures;
    }
    MPI_Comm_free(&part.comm);
    MPI_Allreduce(&failures, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank == 0)
        printf("mpi_pmpi_check: %d ranks, seed %llu: %llu checked, %llu bad\n", world.size,
               (unsigned long long)numbers[2], (unsigned long long)numbers[0], (unsigned long long)all);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
