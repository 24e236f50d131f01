/* The operations of MPI that mcastcoll-perf-mpi can measure: their buffers and their calls. */
#ifndef MCASTCOLL_UTIL_PERF_MPI_OPERATIONS_H
#define MCASTCOLL_UTIL_PERF_MPI_OPERATIONS_H

#include <mpi.h>

#include "perf_data.h"

enum perf_kind {
    kBcast,
    kBarrier,
    kReduce,
    kAllreduce,
    kAllgather,
    kAllgatherv,
    kGather,
    kGatherv,
    kScatter,
    kScatterv,
    kAlltoall,
    kAlltoallv,
    kReduceScatter,
    kReduceScatterBlock,
    kScan,
    kExscan,
    kPerfKinds
};

struct perf_operation {
    enum perf_kind kind;
    bool nonblocking; /* the form that is called MPI_I... */
};

/* One rank's side of the operations of one cell. Owns its memory. */
struct perf_call {
    struct perf_operation operation;
    struct perf_side side;
    int *counts, *places; /* of the forms with a v, and of reduce_scatter */
};

/* "bcast", "ibcast", ...; false for what is none. */
bool perf_find(const char* name, struct perf_operation* operation);
const char* perf_name(struct perf_operation operation);

/* The error, or NULL. The caller has set operation, rank, size, root and bytes. */
const char* perf_open(struct perf_call* call);
void perf_close(struct perf_call* call);

/* The call, which sets *request if the operation is nonblocking. */
int perf_start(struct perf_call* call, MPI_Request* request);

#endif
