// Several threads, each with a separate communicator, keep non-blocking collectives of every kind active,
// mixed with blocking collectives. Every result is compared (mpi_coll_cases.h).
//
// Each thread draws its operations from a separate seed, which is the same on every rank. The first operation
// on a thread's communicator is a barrier, since only a blocking collective forms a group. Threads form and
// free their groups in any order.

#include <pthread.h>
#include <unistd.h>

#include "mpi_coll_cases.h"

enum { kMaxThreads = 64, kMaxOpen = 16 };

typedef struct {
    uint64_t threads, count, open, max, seed;
} Options;

typedef struct {
    const Options* options;
    Part part;
    uint64_t seed, bad, done;
    pthread_t thread;
} Worker;

static const char kHelp[] =
    "usage: mpirun ... mpi_coll_threads [options]\n"
    "  --threads N    with a communicator each, 1 to 64 [8]\n"
    "  --count N      operations of all threads together [2000]\n"
    "  --open N       that a thread has under way, 1 to 16 [4]\n"
    "  --max BYTES    largest part of one member, 32 to 16M [4K]\n"
    "  --seed N       of the drawn operations [1]\n"
    "  --help, --version\n"
    "Sizes take K, M and G.\n";

static Options parse(int argc, char** argv, int rank) {
    Options o = {.threads = 8, .count = 2000, .open = 4, .max = 4 << 10, .seed = 1};
    const Option options[] = {
        {"threads", &o.threads, 1, kMaxThreads, NULL, NULL}, {"count", &o.count, 0, UINT64_MAX, NULL, NULL},
        {"open", &o.open, 1, kMaxOpen, NULL, NULL},          {"max", &o.max, 32, 16 << 20, NULL, NULL},
        {"seed", &o.seed, 0, UINT64_MAX, NULL, NULL},        {0}};
    parse_options(argc, argv, rank, "mpi_coll_threads", kHelp, options);
    return o;
}

static void check(Worker* w, Case* c) {
    char what[200];
    case_describe(c, what, sizeof(what));
    ++w->done;
    if (case_check(c)) return;
    ++w->bad;
    fprintf(stderr, "rank %d, seed %llu, operation %llu: BAD %s\n", w->part.rank, (unsigned long long)w->seed,
            (unsigned long long)w->done, what);
}

// Keeps a ring of operations: the oldest is completed before there are too many. A blocking operation
// overtakes the others.
static void* work(void* argument) {
    Worker* w = argument;
    const Options* o = w->options;
    Case cases[kMaxOpen];
    uint64_t state = w->seed, begun = 0, ended = 0;
    const uint64_t count = o->count / o->threads;
    MPI_Barrier(w->part.comm);
    while (begun < count) {
        if (begun - ended == o->open) check(w, &cases[ended++ % kMaxOpen]);
        Case* c = &cases[begun++ % kMaxOpen];
        const Kind kind = (Kind)(next_random(&state) % kKinds);
        const bool waits = next_random(&state) % 8 == 0;
        case_draw(c, &w->part, kind, next_random(&state), o->max, waits);
        case_start(c);
    }
    while (ended < begun) check(w, &cases[ended++ % kMaxOpen]);
    MPI_Comm_free(&w->part.comm);
    return NULL;
}

int main(int argc, char** argv) {
    int provided, rank, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options o = parse(argc, argv, rank);
    if (provided < MPI_THREAD_MULTIPLE) leave(rank, 77, "mpi_coll_threads: no MPI_THREAD_MULTIPLE here\n");
    static Worker workers[kMaxThreads];
    for (uint64_t i = 0; i < o.threads; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        workers[i] = (Worker){.options = &o, .part = part_of(comm, i), .seed = o.seed * 1000 + i};
    }
    for (uint64_t i = 0; i < o.threads; ++i)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    uint64_t mine[2] = {0, 0}, all[2];
    for (uint64_t i = 0; i < o.threads; ++i) {
        pthread_join(workers[i].thread, NULL);
        mine[0] += workers[i].done;
        mine[1] += workers[i].bad;
    }
    MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("mpi_coll_threads: %d ranks of %llu threads, seed %llu: %llu checked, %llu bad\n", size,
               (unsigned long long)o.threads, (unsigned long long)o.seed,
               (unsigned long long)(all[0] / (uint64_t)size), (unsigned long long)all[1]);
    MPI_Finalize();
    return all[1] == 0 ? 0 : 1;
}
