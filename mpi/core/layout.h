// Messages as MPI describes them, and their packed bytes. Each MPI knows its datatypes in its own way, so
// each face has these functions (openmpi/coll_mcastcoll_pack.c, pmpi/layout.c), which use nothing else of
// core/.

#ifndef MCASTCOLL_MPI_CORE_LAYOUT_H
#define MCASTCOLL_MPI_CORE_LAYOUT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// So many elements, in the program's memory.
typedef struct {
    const void* base;
    int64_t count;
    MPI_Datatype type;
} MccLayout;

size_t mcc_width(MPI_Datatype type);  // packed bytes of an element; 0 for what is no datatype, too
ptrdiff_t mcc_extent(MPI_Datatype type);
// Whether an accelerator may own this memory: then only MPI's own packing reaches it. Callers pass
// significant buffers only.
bool mcc_is_device(const void* base);
// The address of the packed bytes, where the layout holds them as they are in the host's memory, or NULL.
const uint8_t* mcc_contiguous(const MccLayout* layout);
bool mcc_pack(const MccLayout* from, uint8_t* to, size_t bytes);
bool mcc_unpack(const MccLayout* to, const uint8_t* from, size_t bytes);

#endif
