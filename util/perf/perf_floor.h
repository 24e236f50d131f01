/* The floor: the lower bound given by wires and machine, measured as one more stack of mcastcoll-perf. No
 * repair, no flow control, no groups: the minimum for each operation, as described in perf_floor.c. MPI is
 * used only for set-up and to exchange results afterwards. */
#ifndef MCASTCOLL_UTIL_PERF_FLOOR_H
#define MCASTCOLL_UTIL_PERF_FLOOR_H

#include "perf_data.h"

enum perf_floor_operation { kFloorBcast, kFloorBarrier, kFloorAllreduce, kFloorNone };

struct perf_floor;

/* Called by all ranks of the job. A waiting rank yields its core after each poll, or spins. Returns NULL on
 * failure, with the reason in *error. */
struct perf_floor* perf_floor_open(bool yields, const char** error);

/* Prepares the operations of a cell; called by all ranks. Returns NULL, or the reason why the floor lacks the
 * operation. */
const char* perf_floor_begin(struct perf_floor* f, enum perf_floor_operation operation, uint64_t bytes);
void perf_floor_end(struct perf_floor* f);

/* Runs one operation. Returns false if datagrams were lost: then the result is incomplete and the time
 * invalid. */
bool perf_floor_run(struct perf_floor* f, const struct perf_side* s);

/* Number of datagrams lost on the way to this rank, over all operations so far. */
uint64_t perf_floor_lost(const struct perf_floor* f);

#endif
