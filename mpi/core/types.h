// Which of libfabric's datatypes and operators are exactly MPI's.

#ifndef MCASTCOLL_MPI_CORE_TYPES_H
#define MCASTCOLL_MPI_CORE_TYPES_H

#include <mpi.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>

// What libfabric calls the elements, of *width bytes, and the operator of a reduction. False where it has
// nothing that is exactly that: the same on all members. `width_of` is asked about predefined datatypes only.
bool mcc_reduction(MPI_Datatype datatype, MPI_Op op, size_t (*width_of)(MPI_Datatype), enum fi_datatype* type,
                   enum fi_op* fabric_op, size_t* width);

#endif
