// Very long messages: at a bound, one element below, and one element above.
//
// Elements are 64-bit words computed from operation and position, so that a misplaced word is detected. If
// there are more words than an int can count, a datatype contains many of them. Broadcasts start at the first
// and at the last rank: contiguous, as a derived datatype with holes, and non-blocking. Reductions add the
// words of all ranks. Every word is compared on every rank.

#include <limits.h>

#include "mpi_support.h"

enum { kWord = sizeof(uint64_t), kBlock = 7, kStride = 8, kMany = 4096 };

static const char kHelp[] =
    "usage: mpirun ... mpi_long_messages [options]\n"
    "  --bound BYTES    [1M]\n"
    "  --operations S   some of: b broadcasts, d of a derived datatype, i non-blocking, r reduce, a "
    "allreduce [bdira]\n"
    "  --help, --version\n";

typedef struct {
    uint64_t bound;
    const char* operations;
    int rank, size;
    unsigned long long checked, bad;
} Test;

static void parse(int argc, char** argv, Test* t) {
    const Option options[] = {{"bound", &t->bound, 2 * kWord, UINT64_C(1) << 36, NULL, NULL},
                              {"operations", NULL, 0, 0, &t->operations, NULL},
                              {0}};
    parse_options(argc, argv, t->rank, "mpi_long_messages", kHelp, options);
    if (t->bound % kWord != 0 || strspn(t->operations, "bdira") != strlen(t->operations))
        refuse_arguments(t->rank, "mpi_long_messages");
}

static uint64_t word(unsigned long long operation, uint64_t place) {
    uint64_t state = operation << 40 ^ place;
    return next_random(&state);
}

// Returns the position of word i: with holes, an unused word follows every seven words.
static uint64_t at(uint64_t i, bool holes) {
    return holes ? i / kBlock * kStride + i % kBlock : i;
}

static void judge(Test* t, const uint64_t* words, uint64_t count, bool holes, uint64_t times,
                  const char* what) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; ++i) wrong += words[at(i, holes)] != times * word(t->checked, i);
    if (wrong != 0)
        fprintf(stderr, "rank %d: %s of %llu words: %llu are wrong\n", t->rank, what,
                (unsigned long long)count, (unsigned long long)wrong);
    t->bad += wrong != 0;
    ++t->checked;
}

// Makes the datatype of `count` words when an int cannot count them or there are holes: a structure of many
// large elements and a remainder.
static MPI_Datatype whole_type(uint64_t count, bool holes) {
    MPI_Datatype many, type, unit = MPI_UINT64_T;
    const uint64_t per = holes ? (uint64_t)kMany * kBlock : kMany;
    if (holes)
        MPI_Type_vector(kMany, kBlock, kStride, unit, &many);
    else
        MPI_Type_contiguous(kMany, unit, &many);
    const uint64_t full = count / per, rest = count % per;
    const MPI_Aint extent = (MPI_Aint)kMany * kWord * (holes ? kStride : 1);
    MPI_Datatype spaced, tail_blocks, parts[3];
    MPI_Type_create_resized(many, 0, extent, &spaced);
    // The remainder: whole blocks, and some words.
    const int blocks = (int)(rest / kBlock), words = (int)(rest % kBlock);
    MPI_Type_vector(blocks, kBlock, holes ? kStride : kBlock, unit, &tail_blocks);
    int lengths[3] = {(int)full, 1, words};
    const MPI_Aint behind = (MPI_Aint)full * extent;
    MPI_Aint places[3] = {0, behind, behind + (MPI_Aint)blocks * kWord * (holes ? kStride : kBlock)};
    parts[0] = spaced;
    parts[1] = tail_blocks;
    parts[2] = unit;
    MPI_Type_create_struct(3, lengths, places, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&many);
    MPI_Type_free(&spaced);
    MPI_Type_free(&tail_blocks);
    return type;
}

static void broadcast(Test* t, uint64_t* words, uint64_t count, char kind, int root) {
    const bool holes = kind == 'd';
    const uint64_t room = at(count - 1, holes) + 1;
    if (t->rank == root)
        for (uint64_t i = 0; i < count; ++i) words[at(i, holes)] = word(t->checked, i);
    else
        memset(words, 0xa5, room * kWord);
    const bool plain = !holes && count <= INT_MAX / kWord;
    MPI_Datatype type = plain ? MPI_UINT64_T : whole_type(count, holes);
    const int values = plain ? (int)count : 1;
    if (kind == 'i') {
        MPI_Request request;
        MPI_Ibcast(words, values, type, root, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Bcast(words, values, type, root, MPI_COMM_WORLD);
    }
    if (!plain) MPI_Type_free(&type);
    judge(t, words, count, holes, 1,
          holes         ? "a broadcast with holes"
          : kind == 'i' ? "an ibcast"
                        : "a broadcast");
}

static void reduce(Test* t, uint64_t* words, uint64_t count, bool all) {
    const uint64_t times = (uint64_t)t->size * (uint64_t)(t->size + 1) / 2;
    for (uint64_t i = 0; i < count; ++i) words[i] = (uint64_t)(t->rank + 1) * word(t->checked, i);
    if (all)
        MPI_Allreduce(MPI_IN_PLACE, words, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Reduce(t->rank == 0 ? MPI_IN_PLACE : words, words, (int)count, MPI_UINT64_T, MPI_SUM, 0,
                   MPI_COMM_WORLD);
    if (all || t->rank == 0)
        judge(t, words, count, false, times, all ? "an allreduce" : "a reduce");
    else
        ++t->checked;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Test t = {.bound = 1 << 20, .operations = "bdira"};
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.size);
    parse(argc, argv, &t);
    const uint64_t max = t.bound / kWord + 1;
    const bool holes = strchr(t.operations, 'd') != NULL;
    uint64_t* words = malloc((at(max, holes) + kStride) * kWord);
    if (words == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t count = max - 2; count <= max; ++count)
        for (const char* kind = t.operations; *kind != '\0'; ++kind) {
            if (*kind == 'r' || *kind == 'a') {
                reduce(&t, words, count, *kind == 'a');
                continue;
            }
            broadcast(&t, words, count, *kind, 0);
            broadcast(&t, words, count, *kind, t.size - 1);
        }
    free(words);
    unsigned long long bad = 0;
    MPI_Reduce(&t.bad, &bad, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(&bad, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    if (t.rank == 0) printf("mpi_long_messages: %d ranks: %llu checked, %llu bad\n", t.size, t.checked, bad);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
