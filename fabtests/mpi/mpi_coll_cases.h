// Test cases of one collective each, in three steps, so that several can be active at once: draw the case,
// start the collective (a blocking one is then complete), and check the result. Shared by mpi_coll_check,
// mpi_coll_threads and mpi_pmpi_device.
//
// The reference result needs no communication: every rank can compute the input of any other rank, and
// MPI_Reduce_local combines the inputs. Floating-point values are chosen so that sums and products are exact
// in any order.

#ifndef MCASTCOLL_FABTESTS_MPI_COLL_CASES_H
#define MCASTCOLL_FABTESTS_MPI_COLL_CASES_H

#include "mpi_coll_data.h"
#include "mpi_device.h"

typedef struct {
    MPI_Comm comm;
    int rank, size;
    uint64_t salt;   // the same on every member
    Device* device;  // the device of this member's buffers, or NULL
} Part;

// Memory with guard bytes on both sides.
typedef struct {
    uint8_t *memory, *at;  // as the test accesses it
    size_t bytes;
    void* device_memory;  // the same bytes as passed to MPI, or NULL
} Buffer;

typedef enum {
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
    kKinds
} Kind;

typedef struct {
    DrawnOperation drawn;
    Kind kind;
    const Part* part;
    bool waits;  // whether the collective is blocking
    bool input_strided, result_strided;
    bool input_on_device, result_on_device;
    Buffer input, result;
    MPI_Datatype input_type, result_type;
    int *counts, *places;  // of allgatherv and reduce_scatter
    MPI_Request request;
    int rc;
} Case;

extern const char* const kind_names[kKinds];

// Draws a case. Only layouts and devices differ between members. `max` is the number of bytes of the largest
// part of one member.
void case_draw(Case* c, const Part* part, Kind kind, uint64_t key, uint64_t max, bool waits);
void case_start(Case* c);
// Completes the case if necessary and frees its memory. Returns false if any part of the result was wrong.
bool case_check(Case* c);
void case_describe(const Case* c, char* text, size_t bytes);

Part part_of(MPI_Comm comm, uint64_t salt);

#endif
