// Who sends what to whom in the NAS kernels, class B on 16 processes, one iteration each.
//
// Numbers and lengths of messages follow from what is commonly known of the NAS Parallel Benchmarks (Bailey
// et al., "The NAS Parallel Benchmarks 2.0", NAS-95-020): grids of class B, divided among 4 x 4 processes.
// They stay these whatever the number of ranks, so that a job on few ranks has the same connections' traffic.
// Times are the operations that NPB counts for class B, at 0.5 Gop/s for each of 16 processes, as machines
// had when MPI5000 was measured.  Burstiness comes from where computing stands between messages.
#include "patterns.h"

enum {
    kSide = 26,
    kCell = kSide * kSide * 8
};  // of a cell of the 102^3 grid: a side, and bytes of one number per point of a face

// Block-tridiagonal and scalar-pentadiagonal solvers over a multipartition: faces to all six neighbours, then
// a sweep in each dimension, forward and back over the cells.  Each dimension's neighbour is another process,
// so a connection is silent for most of an iteration.
static void solve(struct run* run, double total_ms, size_t face, size_t forward, size_t back) {
    const int next[3] = {neighbour(run, 0, 1), neighbour(run, 1, 0), neighbour(run, -1, 1)};
    const int previous[3] = {neighbour(run, 0, -1), neighbour(run, -1, 0), neighbour(run, 1, -1)};
    const int all[6] = {next[0], previous[0], next[1], previous[1], next[2], previous[2]};
    exchange_many(run, all, 6, face);
    compute(run, total_ms * 0.25);
    for (int dimension = 0; dimension < 3; dimension++) {
        for (int stage = 0; stage < 3; stage++) {
            compute(run, total_ms * 0.05);
            exchange(run, next[dimension], previous[dimension], forward);
        }
        for (int stage = 0; stage < 3; stage++) {
            compute(run, total_ms * 0.02);
            exchange(run, previous[dimension], next[dimension], back);
        }
    }
    compute(run, total_ms * 0.12);
}
static void bt(struct run* run) {
    solve(run, 450, 151000, kCell * 30, kCell * 5);
}
static void sp(struct run* run) {
    solve(run, 140, 130000, kCell * 22, kCell * 10);
}

// Wavefronts over the planes of a grid: about a kilobyte to the next two processes for each plane, down and
// up again.
static void lu(struct run* run) {
    const int row = run->rank / run->columns, column = run->rank % run->columns;
    const int north = row > 0 ? run->rank - run->columns : -1,
              south = row + 1 < run->rows ? run->rank + run->columns : -1;
    const int west = column > 0 ? run->rank - 1 : -1, east = column + 1 < run->columns ? run->rank + 1 : -1;
    for (int plane = 0; plane < 100; plane++) {
        pass_on(run, -1, north, 1040);
        pass_on(run, -1, west, 1040);
        compute(run, 1.2);
        pass_on(run, south, -1, 1040);
        pass_on(run, east, -1, 1040);
    }
    for (int plane = 0; plane < 100; plane++) {
        pass_on(run, -1, south, 1040);
        pass_on(run, -1, east, 1040);
        compute(run, 1.2);
        pass_on(run, north, -1, 1040);
        pass_on(run, west, -1, 1040);
    }
    const int vertical[2] = {neighbour(run, 1, 0), neighbour(run, -1, 0)};
    exchange_many(run, vertical, 2, 26 * 102 * 5 * 8);
    compute(run, 37);
}

// Conjugate gradients: sums of vectors along a row of processes, their transposition, and two scalar
// products, 25 times.
static void cg(struct run* run) {
    for (int inner = 0; inner < 25; inner++) {
        compute(run, 3.6);
        for (int distance = 1; distance < 4; distance *= 2) {
            const int with = run->rank ^ (distance < run->columns ? distance : run->columns);
            if (with < run->size) exchange(run, with, with, 150000);
        }
        const int across = run->size - 1 - run->rank;
        if (across != run->rank) exchange(run, across, across, 150000);
        sum_up(run, 8);
        sum_up(run, 8);
    }
}

// V-cycles over grids that are coarser and coarser: faces in three dimensions, from 130 kB to a few bytes.
static void mg(struct run* run) {
    const int pairs[3][2] = {{neighbour(run, 0, 1), neighbour(run, 0, -1)},
                             {neighbour(run, 1, 0), neighbour(run, -1, 0)},
                             {neighbour(run, -1, 1), neighbour(run, 1, -1)}};
    size_t face = 131072;
    for (int way = 0; way < 2; way++) {
        for (int level = 0; level < 8; level++) {
            compute(run, 29.0 * (double)face / 131072 + 0.5);
            for (int dimension = 0; dimension < 3; dimension++) exchange_many(run, pairs[dimension], 2, face);
            if (level < 7) face = way == 0 ? face / 4 : face * 4;
            if (face < 8) face = 8;
        }
    }
}

static void ft(struct run* run) {  // a transposition of 512 x 256 x 256 complex numbers
    compute(run, 575);
    everybody(run, 2097152);
    sum_up(run, 16);
}

static void is(struct run* run) {  // 2^25 keys change hands, after their distribution has been agreed on
    compute(run, 40);
    sum_up(run, 4096);
    everybody(run, 4);
    everybody(run, 524288);
}

static void ep(struct run* run) {
    compute(run, 2000);
    sum_up(run, 8);
    sum_up(run, 8);
    sum_up(run, 80);
}

const struct kernel kKernels[] = {
    {"BT", "faces, and sweeps of large blocks to another neighbour each", 12, 6 * 151000, bt},
    {"SP", "the same, twice as often and with less", 30, 6 * 130000, sp},
    {"LU", "wavefronts of messages of a kilobyte", 8, 2 * 106080, lu},
    {"CG", "150 kB and scalar products in turn", 3, 150000, cg},
    {"MG", "faces of grids, from large to tiny", 12, 2 * 131072, mg},
    {"FT", "transpositions: all to all, 2 MB a pair", 3, 2097152, ft},
    {"IS", "all to all, 512 kB a pair, and a small reduction", 6, 524288, is},
    {"EP", "hardly any communication", 2, 4096, ep},
    {0},
};
