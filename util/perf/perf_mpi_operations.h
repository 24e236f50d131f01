/* The operations of MPI that mcastcoll-perf-mpi can measure: their buffers, their calls, and what must have
 * come. */
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
    int rank, size, root;
    uint64_t bytes;                   /* as the user gave them: see mcastcoll-perf(1) */
    uint64_t elements;                /* of reductions: doubles of the whole vector */
    uint64_t own_first, own_elements; /* of them, what this rank gets of a reduce_scatter */
    uint64_t send_bytes, receive_bytes;
    uint8_t *send, *receive;
    int *counts, *places; /* of the forms with a v, and of reduce_scatter */
    uint64_t serial;      /* no two operations have the same data */
};

/* "bcast", "ibcast", ...; false for what is none. */
bool perf_find(const char* name, struct perf_operation* operation);
const char* perf_name(struct perf_operation operation);
bool perf_is_rooted(enum perf_kind kind); /* all wait for what the root has */
bool perf_reduces(enum perf_kind kind);

/* The error, or NULL. The caller has set operation, rank, size, root and bytes. */
const char* perf_open(struct perf_call* call);
void perf_close(struct perf_call* call);

/* New data for the operation `serial`; the call, which sets *request if the operation is nonblocking; what
 * came of it. */
void perf_prepare(struct perf_call* call);
int perf_start(struct perf_call* call, MPI_Request* request);
bool perf_verify(const struct perf_call* call);

#endif
