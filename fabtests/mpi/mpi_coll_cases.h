// One collective of a test, in three steps, so that several can be under way at once: make it, start it
// (which, when it blocks, is all), and check it. Shared by mpi_coll_check and mpi_coll_threads.
//
// The reference needs no communication: every rank can make every other's input, and MPI_Reduce_local
// combines them. Sums and products of floating point are of numbers with which they are exact in any order.

#ifndef MCASTCOLL_FABTESTS_MPI_COLL_CASES_H
#define MCASTCOLL_FABTESTS_MPI_COLL_CASES_H

#include "mpi_coll_data.h"
#include "mpi_device.h"

typedef struct {
    MPI_Comm comm;
    int rank, size;
    uint64_t salt;   // the same on all members
    Device* device;  // this member has buffers there, or NULL
} Part;

// Memory that is watched on both sides.
typedef struct {
    uint8_t *memory, *at;  // the test's
    size_t bytes;
    void* device_memory;  // MPI is given the same bytes there, or NULL
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
    Plan plan;
    Kind kind;
    const Part* part;
    bool waits;  // blocking
    bool input_strided, result_strided;
    bool input_on_device, result_on_device;
    Buffer input, result;
    MPI_Datatype input_type, result_type;
    int *counts, *places;  // of allgatherv and reduce_scatter
    MPI_Request request;
    int rc;
} Case;

extern const char* const kind_names[kKinds];

// All members draw the same but for layouts. `max`: bytes of the largest part of one member.
void case_draw(Case* c, const Part* part, Kind kind, uint64_t key, uint64_t max, bool waits);
void case_start(Case* c);
// Completes it if need be; false if anything about it was wrong. Gives everything back.
bool case_check(Case* c);
void case_describe(const Case* c, char* text, size_t bytes);

Part part_of(MPI_Comm comm, uint64_t salt);

#endif
