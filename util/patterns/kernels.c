// Message patterns of the NAS kernels, class B on 16 processes, one iteration each.
//
// Numbers and lengths of messages follow from the kernels' own definitions (Bailey et al., NAS-95-020) for
// grids of class B on 4 x 4 processes. The messages between the two halves of the ranks are those counted in
// MPI5000's table 2 (Glueck, Mignot, ISPA 2011) between two sites of eight: 'patterns count' prints them, and
// a test compares. Lengths do not depend on the number of ranks. Times are the operations that NPB counts for
// class B, at 0.5 Gop/s for each of 16 processes. Burstiness comes from the position of computing between
// messages.
#include "patterns.h"

enum {
    kCell = 5202
};  // bytes of one number per point of a cell's side: 102 points on 4 processes are 25.5 a cell

// Block-tridiagonal and scalar-pentadiagonal solvers over a multipartition: two layers of five numbers to all
// six neighbours, then a sweep in each dimension, forward and back over the cells. The neighbour in each
// dimension is another process, so a connection is idle for most of an iteration.
static void solve(struct run* run, double total_ms, size_t forward, size_t back) {
    const int next[3] = {neighbour(run, 0, 1), neighbour(run, 1, 0), neighbour(run, -1, 1)};
    const int previous[3] = {neighbour(run, 0, -1), neighbour(run, -1, 0), neighbour(run, 1, -1)};
    const int all[6] = {next[0], previous[0], next[1], previous[1], next[2], previous[2]};
    exchange_many(run, all, 6, kCell * 30);
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
    solve(run, 450, kCell * 30, kCell * 5);
}
static void sp(struct run* run) {
    solve(run, 140, kCell * 22, kCell * 10);
}

// Sweeps over the planes of a grid: for each plane, receives from two neighbours and sends to the two on the
// other side.
static void sweep(struct run* run, int to_column, int to_row, int from_column, int from_row) {
    for (int plane = 0; plane < 100; plane++) {
        receive_and_send(run, -1, from_column, 1040);
        receive_and_send(run, -1, from_row, 1040);
        compute(run, 1.2);
        receive_and_send(run, to_column, -1, 1040);
        receive_and_send(run, to_row, -1, 1040);
    }
}

// Wavefronts over the planes of a grid: a kilobyte to the next two processes for each plane, down and up
// again; then two layers of the whole side to each neighbour. The grid has borders and does not wrap around.
static void lu(struct run* run) {
    const int row = run->rank / run->columns, column = run->rank % run->columns;
    const int north = row > 0 ? run->rank - run->columns : -1,
              south = row + 1 < run->rows ? run->rank + run->columns : -1;
    const int west = column > 0 ? run->rank - 1 : -1, east = column + 1 < run->columns ? run->rank + 1 : -1;
    sweep(run, south, east, north, west);
    sweep(run, north, west, south, east);
    const int vertical[2] = {north, south}, horizontal[2] = {west, east};
    exchange_many(run, vertical, 2, 208080);
    exchange_many(run, horizontal, 2, 208080);
    compute(run, 37);
}

// A sum along a row of processes, by recursive doubling.
static void sum_along_row(struct run* run, size_t bytes) {
    const int column = run->rank % run->columns;
    for (int distance = 1; distance < run->columns; distance *= 2) {
        const int with = column ^ distance;
        if (with < run->columns) exchange(run, run->rank - column + with, run->rank - column + with, bytes);
    }
}

// Conjugate gradients: sums of vectors along a row, their transposition, and two scalar products along a row;
// 25 times and once for the residual. Only the transposition leaves a row.
static void cg(struct run* run) {
    const int row = run->rank / run->columns, column = run->rank % run->columns;
    const int across = run->rows == run->columns ? column * run->columns + row : run->size - 1 - run->rank;
    for (int inner = 0; inner < 26; inner++) {
        compute(run, 3.5);
        sum_along_row(run, 150000);
        exchange(run, across, across, 150000);
        sum_along_row(run, 8);
        sum_along_row(run, 8);
    }
}

// Faces of one level of MG's grids: each process has a quarter of one dimension, and half of the others.
// Sends to both neighbours along the column, and sends both sides to the only partner in each other
// dimension.
static void faces(struct run* run, int level, int visits, double level_ms) {
    const size_t wide = (128u >> level) + 2, narrow = (64u >> level) + 2;
    const int column = run->rank % run->columns, start = run->rank - column;
    const int around[2] = {neighbour(run, 1, 0), neighbour(run, -1, 0)};
    for (int visit = 0; visit < visits; visit++) {
        compute(run, level_ms / visits);
        exchange_many(run, around, 2, wide * wide * 8);
        for (int distance = 1; distance <= 2; distance *= 2) {
            const int with = column ^ distance, both[2] = {start + with, start + with};
            if (with < run->columns) exchange_many(run, both, 2, wide * narrow * 8);
        }
    }
}

// V-cycles over coarser and coarser grids, and back: each grid is restricted, smoothed, and its residual
// taken.
static void mg(struct run* run) {
    const double finest_ms = 117 * 7 / 8.0;
    double level_ms = finest_ms;
    for (int level = 1; level < 8; level++) faces(run, level, level < 7 ? 1 : 5, (level_ms /= 8) / 3);
    for (int level = 6; level > 0; level--) faces(run, level, 2, (level_ms *= 8) * 2 / 3);
    faces(run, 0, 3, finest_ms);
}

static void ft(struct run* run) {  // a transposition of 512 x 256 x 256 complex numbers
    compute(run, 575);
    exchange_all(run, 2097152);
    sum_up(run, 16);
}

static void is(struct run* run) {  // 2^25 keys are redistributed, after an allreduce of their distribution
    compute(run, 40);
    sum_up(run, 4096);
    exchange_all(run, 4);
    exchange_all(run, 524288);
}

static void ep(struct run* run) {
    compute(run, 2000);
    sum_up(run, 8);
    sum_up(run, 8);
    sum_up(run, 80);
}

const struct kernel kKernels[] = {
    {"BT", "faces, and sweeps of large blocks, each to another neighbour", 8, 6 * 156060, bt},
    {"SP", "like BT, twice as often and with less data", 16, 6 * 156060, sp},
    {"LU", "wavefronts of messages of a kilobyte", 6, 2 * 208080, lu},
    {"CG", "150 kB to the transposed rank, and sums along rows", 3, 150000, cg},
    {"MG", "faces of grids, from large to tiny and back", 10, 2 * 135200, mg},
    {"FT", "transpositions: all to all, 2 MB a pair", 2, 2097152, ft},
    {"IS", "all to all, 512 kB a pair, and a small reduction", 4, 524288, is},
    {"EP", "hardly any communication", 2, 4096, ep},
    {0},
};
