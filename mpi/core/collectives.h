// Which of MPI's collectives are served, and what libfabric calls them, their elements and operators.

#ifndef MCASTCOLL_MPI_CORE_COLLECTIVES_H
#define MCASTCOLL_MPI_CORE_COLLECTIVES_H

#include <mpi.h>
#include <rdma/fi_collective.h>
#include <stdbool.h>
#include <stddef.h>

// All that is served, and what the provider calls it.
#define MCC_COLLECTIVES(X)                                  \
    X(kMccBcast, bcast, FI_BROADCAST)                       \
    X(kMccBarrier, barrier, FI_BARRIER)                     \
    X(kMccReduce, reduce, FI_REDUCE)                        \
    X(kMccAllreduce, allreduce, FI_ALLREDUCE)               \
    X(kMccAllgather, allgather, FI_ALLGATHER)               \
    X(kMccAllgatherv, allgatherv, FI_ALLGATHER)             \
    X(kMccGather, gather, FI_GATHER)                        \
    X(kMccScatter, scatter, FI_SCATTER)                     \
    X(kMccAlltoall, alltoall, FI_ALLTOALL)                  \
    X(kMccReduceScatter, reduce_scatter, FI_REDUCE_SCATTER) \
    X(kMccReduceScatterBlock, reduce_scatter_block, FI_REDUCE_SCATTER)

typedef enum {
#define MCC_ENUMERATOR(enumerator, name, collective) enumerator,
    MCC_COLLECTIVES(MCC_ENUMERATOR)
#undef MCC_ENUMERATOR
        kMccCollectives
} MccCollective;

extern const char* const mcc_collective_names[kMccCollectives];  // as in MPI, small letters
extern const enum fi_collective_op mcc_collective_ops[kMccCollectives];

// A user's list of them, as bits: "all", "none" or names, with commas between; one with ^ before it is taken
// out, of all of them where it is the first. False for a word that is none of these: `reason`, of
// kMccReasonBytes, says so of the setting `name`, and what is allowed.
bool mcc_read_collectives(const char* name, const char* text, unsigned* enabled, char* reason);
// Digits, perhaps with K, M or G. Where they end, or NULL.
const char* mcc_read_number(const char* at, size_t* number);

// What libfabric calls the elements, of *width bytes, and the operator of a reduction. False where it has
// nothing that is exactly that: the same on all members.
bool mcc_reduction(MPI_Datatype datatype, MPI_Op op, enum fi_datatype* type, enum fi_op* fabric_op,
                   size_t* width);

#endif
