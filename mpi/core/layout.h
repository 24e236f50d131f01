// Message layouts as MPI describes them, and packed bytes. MPI libraries handle datatypes in different ways,
// so each front end implements these functions (openmpi/coll_mcastcoll_pack.c, pmpi/layout.c). The functions
// use no other part of core/.

#ifndef MCASTCOLL_MPI_CORE_LAYOUT_H
#define MCASTCOLL_MPI_CORE_LAYOUT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `count` elements in the program's memory.
typedef struct {
    const void* base;
    int64_t count;
    MPI_Datatype type;
} MccLayout;

size_t mcc_width(MPI_Datatype type);  // packed bytes of an element; also 0 if the datatype is invalid
ptrdiff_t mcc_extent(MPI_Datatype type);
// Returns whether the memory at `base` may belong to an accelerator. Only MPI's own packing reaches such
// memory. `base` must be a buffer that MPI uses on this member.
bool mcc_is_device(const void* base);
// Returns the address of the packed bytes if the layout holds them contiguously in the host's memory, or else
// NULL.
const uint8_t* mcc_contiguous(const MccLayout* layout);
bool mcc_pack(const MccLayout* from, uint8_t* to, size_t bytes);
bool mcc_unpack(const MccLayout* to, const uint8_t* from, size_t bytes);

#endif
