// A call of an interposed operation of libmcastcoll-pmpi.so, made twice on equal data: through MPI_... and
// through PMPI_.... Every byte of the buffers is compared, including bytes that must not change.

#ifndef MCASTCOLL_FABTESTS_MPI_PMPI_CALLS_H
#define MCASTCOLL_FABTESTS_MPI_PMPI_CALLS_H

#include <stdbool.h>

#include "mpi_support.h"

enum { kMaxMembers = 1024 };

typedef enum {  // in the order of the library's counters
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

// Shapes of the counts of a v operation, from the call's count c: c, and c + 1 for the first member (the
// provider's distribution); all c; any count up to c; c, c - 1, c - 2 ...; c for half of the members and 0
// for the others, with `extra` added to one count.
typedef enum { kDistributed, kAlike, kAny, kDrawnShapes, kStairs = kDrawnShapes, kHalf } Shape;

typedef struct {
    Operation operation;
    MPI_Datatype type;
    size_t width;
    MPI_Op op;
    size_t count;  // elements of a block; even with the layout kSwapped
    int root;
    bool in_place, large;
    Layout in, out;  // may differ between ranks
    Shape shape;
    int extra;
    bool backwards;  // MPI_Allgatherv's blocks are ordered from the last rank to the first
    uint64_t key;
} Call;

typedef struct {
    int counts[kMaxMembers], places[kMaxMembers], largest, sum;
} Lists;

Part pmpi_make_part(MPI_Comm comm);
bool pmpi_is_reduction(Operation operation);
// Makes the counts and displacements of a v operation, in units of `per` elements of the call.
Lists pmpi_make_lists(const Call* call, const Part* part, int per);
// Makes the call both ways; returns whether all buffers are equal.
bool pmpi_check_call(const Call* call, const Part* part);
void pmpi_print_call(const Call* call, const Part* part);

#endif
