// One call of an operation that libmcastcoll-pmpi.so interposes, made twice: through MPI_... and through
// PMPI_..., on equal data. Every byte of the buffers is compared, what must stay as it was included.

#ifndef MCASTCOLL_FABTESTS_MPI_PMPI_CALLS_H
#define MCASTCOLL_FABTESTS_MPI_PMPI_CALLS_H

#include <stdbool.h>

#include "mpi_support.h"

enum { kMostMembers = 1024 };

typedef enum {  // in the order in which the library counts them
    kBcast,
    kBarrier,
    kReduce,
    kAllreduce,
    kAllgather,
    kAllgatherv,
    kGather,
    kScatter,
    kAlltoall,
    kReduceScatter,
    kReduceScatterBlock,
    kOperations
} Operation;

extern const char* const pmpi_operation_names[kOperations];

typedef struct {
    MPI_Comm comm;
    int rank, size;
} Part;

typedef enum { kPlain, kGaps, kSwapped, kDup, kLayouts } Layout;

// The counts of the v operations, from the plan's count c: the first one more than the others (which is how
// the provider deals); all c; any up to c; c, c - 1, c - 2 ...; c for half of the members and none for the
// others, and `extra` more, or less, in all.
typedef enum { kDealt, kAlike, kAny, kDrawnShapes, kStairs = kDrawnShapes, kHalf } Shape;

typedef struct {
    Operation operation;
    MPI_Datatype type;
    size_t width;
    MPI_Op op;
    size_t count;  // elements of a block; even with the layout kSwapped
    int root;
    bool in_place, large;
    Layout in, out;  // each rank's own
    Shape shape;
    int extra;
    bool backwards;  // MPI_Allgatherv's blocks lie in the order from the last rank to the first
    uint64_t key;
} Plan;

typedef struct {
    int counts[kMostMembers], places[kMostMembers], largest, sum;
} Lists;

Part pmpi_make_part(MPI_Comm comm);
bool pmpi_is_reduction(Operation operation);
// In elements of which each makes up `per` of the plan's.
Lists pmpi_make_lists(const Plan* plan, const Part* part, int per);
bool pmpi_check_call(const Plan* plan, const Part* part);
void pmpi_print_plan(const Plan* plan, const Part* part);

#endif
