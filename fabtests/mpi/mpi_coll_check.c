// Checks all operations that the coll component serves, drawn from a seed: datatypes, operators, counts,
// roots, in place or not, contiguous or not, blocking or several active at once, on the world and on random
// parts of it. Every result is compared on every rank (mpi_coll_cases.h).
//
// The drawn operations include some that the component leaves to Open MPI (user-defined operators, pair
// types). Inexact sums are computed twice and must have the same bits on every rank each time.
//
// With --device, odd ranks have buffers on a device (mpi_device.h). Open MPI then needs the accelerator
// mccfake, and the component must serve all calls, since Open MPI's own reductions read such memory directly.

#include <unistd.h>

#include "mpi_coll_cases.h"

enum { kPartEvery = 50, kClockEvery = 10, kUnevenCount = 300, kTag = 7, kSleepUs = 2000, kMaxOpen = 8 };

typedef struct {
    uint64_t max, count, seed, seconds;
    bool device;
    const char* only;  // NULL: every kind of operation
    Kind only_kind;
} Options;

static const char kHelp[] =
    "usage: mpirun ... mpi_coll_check [options]\n"
    "  --max BYTES      largest part of one member, 32 to 256M [64K]\n"
    "  --count N        rounds, of 1 to 8 operations [500]\n"
    "  --seed N         of the drawn operations [1]\n"
    "  --seconds N      ends after so many, whatever is left of the rounds; 0: after all rounds [0]\n"
    "  --device         odd ranks have buffers on a device\n"
    "  --only NAME      of the operations that are compared, as bcast or allreduce\n"
    "  --help, --version\n"
    "Sizes take K, M and G.\n";

static Options parse(int argc, char** argv, int rank) {
    Options o = {.max = 64 << 10, .count = 500, .seed = 1};
    const Option options[] = {{"max", &o.max, 32, 1 << 28, NULL, NULL},
                              {"count", &o.count, 0, UINT64_MAX, NULL, NULL},
                              {"seed", &o.seed, 0, UINT64_MAX, NULL, NULL},
                              {"seconds", &o.seconds, 0, UINT64_MAX, NULL, NULL},
                              {.name = "device", .given = &o.device},
                              {.name = "only", .word = &o.only},
                              {0}};
    parse_options(argc, argv, rank, "mpi_coll_check", kHelp, options);
    while (o.only != NULL && o.only_kind < kKinds && strcmp(o.only, kind_names[o.only_kind]) != 0)
        ++o.only_kind;
    if (o.only_kind == kKinds) refuse_arguments(rank, "mpi_coll_check");
    return o;
}

// A user-defined operator on 32-bit integers, which gives the same result in any order.
static void user_xor(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *count; ++i) ((int32_t*)inout)[i] ^= ((int32_t*)in)[i];
}

static void barrier(MPI_Comm comm, bool waits) {
    MPI_Request request;
    if (waits) {
        MPI_Barrier(comm);
        return;
    }
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// After the barrier, each rank sends a message to the late rank. If a message arrives before the late rank
// enters, the barrier leaked.
static bool check_barrier(const Part* part, uint64_t key, bool waits) {
    const int late = (int)(key % (uint64_t)part->size);
    if (part->rank != late) {
        barrier(part->comm, waits);
        MPI_Send(NULL, 0, MPI_BYTE, late, kTag, part->comm);
        return true;
    }
    int leaked = 0;
    usleep(kSleepUs);
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, part->comm, &leaked, MPI_STATUS_IGNORE);
    barrier(part->comm, waits);
    for (int i = 1; i < part->size; ++i)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, kTag, part->comm, MPI_STATUS_IGNORE);
    return !leaked;
}

// Checks operations that the component leaves to Open MPI: with a user-defined operator, and of a pair type.
static bool check_left(const Part* part, uint64_t key) {
    enum { kMax = 100 };
    int32_t input[kMax], result[kMax];
    const int count = 1 + (int)(key % kMax);
    bool good = true;
    MPI_Op own;
    MPI_Op_create(user_xor, 1, &own);
    for (int i = 0; i < count; ++i) input[i] = (int32_t)(key >> 3) + i * (part->rank + 1);
    good = MPI_Allreduce(input, result, count, MPI_INT32_T, own, part->comm) == MPI_SUCCESS;
    for (int i = 0; i < count; ++i) {
        int32_t expected = 0;
        for (int member = 0; member < part->size; ++member)
            expected ^= (int32_t)(key >> 3) + i * (member + 1);
        good = good && result[i] == expected;
    }
    MPI_Op_free(&own);
    struct {
        double value;
        int index;
    } mine = {.value = (double)((part->rank * 7 + (int)(key % 5)) % 11), .index = part->rank}, best;
    good = MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, part->comm) == MPI_SUCCESS && good;
    for (int member = 0; member < part->size; ++member) {
        const double value = (double)((member * 7 + (int)(key % 5)) % 11);
        good = good && (value < best.value || (value == best.value && member >= best.index));
    }
    return good;
}

// Checks that sums which depend on the order have the same bits twice, and on every member.
static bool check_bits(const Part* part, uint64_t key) {
    double input[kUnevenCount], first[kUnevenCount], second[kUnevenCount], neighbour[kUnevenCount];
    uint64_t state = key + (uint64_t)part->rank;
    for (int i = 0; i < kUnevenCount; ++i) input[i] = (double)next_random(&state) * 1e-7 + 0.1;
    MPI_Allreduce(input, first, kUnevenCount, MPI_DOUBLE, MPI_SUM, part->comm);
    if ((uint64_t)part->rank == key % (uint64_t)part->size) usleep(kSleepUs);
    MPI_Allreduce(input, second, kUnevenCount, MPI_DOUBLE, MPI_SUM, part->comm);
    MPI_Sendrecv(first, kUnevenCount, MPI_DOUBLE, (part->rank + 1) % part->size, kTag, neighbour,
                 kUnevenCount, MPI_DOUBLE, (part->rank + part->size - 1) % part->size, kTag, part->comm,
                 MPI_STATUS_IGNORE);
    return memcmp(first, second, sizeof(first)) == 0 && memcmp(first, neighbour, sizeof(first)) == 0;
}

// Counts operations with a buffer on the device: blocking or not, and by the bytes of one member's part.
enum { kBlocking, kNotBlocking, kSmall, kMiddle, kLong, kLonger, kColumns };
static uint64_t on_device[kKinds][kColumns];

static void count_device(const Case* c) {
    if (!c->input_on_device && !c->result_on_device) return;
    const uint64_t bytes = c->drawn.count * c->drawn.type->width;
    ++on_device[c->kind][c->waits ? kBlocking : kNotBlocking];
    ++on_device[c->kind][bytes <= 1 << 10   ? kSmall
                         : bytes <= 1 << 14 ? kMiddle
                         : bytes <= 1 << 18 ? kLong
                                            : kLonger];
}

static void print_devices(int rank) {
    uint64_t all[kKinds][kColumns];
    MPI_Reduce(on_device, all, kKinds * kColumns, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("on the device               blocking    not  to 1K to 16K to 256K  more\n");
    for (int i = 0; i < kKinds && rank == 0; ++i) {
        if (i == kBarrier) continue;
        printf("device %-21s", kind_names[i]);
        for (int j = 0; j < kColumns; ++j) printf(" %7llu", (unsigned long long)all[i][j]);
        printf("\n");
    }
}

static Kind draw_kind(const Options* o, uint64_t* state) {
    const Kind kind = (Kind)(next_random(state) % kKinds);
    return o->only != NULL ? o->only_kind : kind;
}

// Starts several operations at once, including blocking operations, and completes them in the order of their
// start or in reverse order.
static unsigned check_many(const Options* o, const Part* part, uint64_t key, int rank, uint64_t number) {
    uint64_t state = key ^ part->salt;
    Case cases[kMaxOpen];
    const size_t count = next_random(&state) % 2 == 0 ? 1 : random_between(&state, 2, kMaxOpen);
    unsigned bad = 0;
    for (size_t i = 0; i < count; ++i) {
        const bool waits = next_random(&state) % (count == 1 ? 2 : 4) == 0;
        const Kind kind = draw_kind(o, &state);
        case_draw(&cases[i], part, kind, next_random(&state), o->max, waits);
        case_start(&cases[i]);
    }
    const bool backwards = (key + (uint64_t)part->rank) % 2 == 0;
    for (size_t i = 0; i < count; ++i) {
        Case* c = &cases[backwards ? count - 1 - i : i];
        char what[200];
        case_describe(c, what, sizeof(what));
        count_device(c);
        if (case_check(c)) continue;
        fprintf(stderr, "rank %d, round %llu: BAD %s\n", rank, (unsigned long long)number, what);
        ++bad;
    }
    return bad;
}

static unsigned check_round(const Options* o, const Part* part, uint64_t key, int rank, uint64_t number) {
    uint64_t state = key ^ part->salt;
    bool good;
    switch (next_random(&state) % 16) {
        case 0:
            good = check_barrier(part, key >> 8, key % 2 == 0);
            break;
        case 1:
            good = check_left(part, key);
            break;
        case 2:
            good = check_bits(part, key);
            break;
        default:
            return check_many(o, part, next_random(&state), rank, number);
    }
    if (!good)
        fprintf(stderr, "rank %d, round %llu: BAD barrier, left to others, or bits\n", rank,
                (unsigned long long)number);
    return !good;
}

// Whether the time is over by rank 0's clock; the same on every rank.
static bool time_is_over(const Options* o, double begun) {
    int over = MPI_Wtime() - begun >= (double)o->seconds;
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return over;
}

// Splits MPI_COMM_WORLD with random colours and a random order of ranks.
static Part split(const Options* o, int rank, uint64_t seed, Device* device) {
    uint64_t state = seed, own = seed + (uint64_t)rank * 77;
    const uint64_t colours = random_between(&state, 1, 3);
    const int colour = (int)(next_random(&own) % colours);
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, colour, (int)(next_random(&own) % 1000), &comm);
    Part part = part_of(comm, (uint64_t)colour * 31);
    if (part.size > 1) part.device = device;  // Open MPI serves communicators with a single member
    if (o->device) MPI_Barrier(comm);  // non-blocking operations are served only after a group has formed
    return part;
}

int main(int argc, char** argv) {
    static Device device;
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options o = parse(argc, argv, rank);
    Part world = part_of(MPI_COMM_WORLD, 0), part = {.comm = MPI_COMM_NULL};
    const double begun = MPI_Wtime();
    Device* mine = o.device && rank % 2 == 1 ? &device : NULL;
    if (mine != NULL && !device_open(mine)) MPI_Abort(MPI_COMM_WORLD, 2);
    world.device = mine;
    if (o.device) MPI_Barrier(MPI_COMM_WORLD);
    uint64_t state = o.seed, bad = 0, all = 0, i = 0;
    for (; i < o.count; ++i) {
        if (o.seconds > 0 && i % kClockEvery == 0 && time_is_over(&o, begun)) break;
        const uint64_t key = next_random(&state);
        if (i % kPartEvery == 0) {
            if (part.comm != MPI_COMM_NULL) MPI_Comm_free(&part.comm);
            part = split(&o, rank, key, mine);
        }
        bad += check_round(&o, key % 3 == 0 ? &part : &world, key, rank, i);
    }
    if (part.comm != MPI_COMM_NULL) MPI_Comm_free(&part.comm);
    if (o.device) print_devices(rank);
    MPI_Reduce(&bad, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_coll_check: %d ranks, seed %llu: %llu checked, %llu bad\n", size,
               (unsigned long long)o.seed, (unsigned long long)i, (unsigned long long)all);
    MPI_Bcast(&all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
