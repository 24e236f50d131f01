/* The floor: what the wires and the machine give with nothing on top, measured as one more stack of
 * mcastcoll-perf. No repair, no flow control, no groups: the least that could do the job. perf_floor.c says
 * what that is for each operation. MPI is only used to meet before and to exchange results afterwards. */
#ifndef MCASTCOLL_UTIL_PERF_FLOOR_H
#define MCASTCOLL_UTIL_PERF_FLOOR_H

#include "perf_data.h"

enum perf_floor_operation { kFloorBcast, kFloorBarrier, kFloorAllreduce, kFloorNone };

struct perf_floor;

/* Called by all ranks of the job. A rank that waits yields its core after each look, or spins. NULL: *error
 * says why not. */
struct perf_floor* perf_floor_open(bool yields, const char** error);

/* What the operations of a cell need; called by all ranks. Why the floor does not have it, or NULL. */
const char* perf_floor_begin(struct perf_floor* f, enum perf_floor_operation operation, uint64_t bytes);
void perf_floor_end(struct perf_floor* f);

/* One operation. False: datagrams were lost, so that its result is not there and its time means nothing. */
bool perf_floor_run(struct perf_floor* f, const struct perf_side* s);

/* Datagrams that this rank has waited for in vain, of all its operations so far. */
uint64_t perf_floor_lost(const struct perf_floor* f);

#endif
