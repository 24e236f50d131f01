// The supported MPI collectives, and libfabric's names for collectives, datatypes and operators.

#ifndef MCASTCOLL_MPI_CORE_COLLECTIVES_H
#define MCASTCOLL_MPI_CORE_COLLECTIVES_H

#include <mpi.h>
#include <rdma/fi_collective.h>
#include <stdbool.h>
#include <stddef.h>

// Each supported collective, and the provider's operation.
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

extern const char* const mcc_collective_names[kMccCollectives];  // as in MPI, in lower case
extern const enum fi_collective_op mcc_collective_ops[kMccCollectives];

// Reads a user's list of collectives into a bit mask: "all", "none" or names separated by commas. A name
// after ^ is removed from the list; if the first name has a ^, the list starts from all. False for an unknown
// name: then `reason` (kMccReasonBytes) names the setting `name` and the values that are allowed.
bool mcc_read_collectives(const char* name, const char* text, unsigned* enabled, char* reason);

// Finds libfabric's datatype, its size *width in bytes, and libfabric's operator for a reduction. False if
// libfabric has no exact counterpart. The result is the same on every member.
bool mcc_reduction(MPI_Datatype datatype, MPI_Op op, enum fi_datatype* type, enum fi_op* fabric_op,
                   size_t* width);

#endif
