// A prepared call (MccPreparedCall): one MPI call in the form required by the provider, and the work left for
// the time when the provider has finished.
//
// Each front end decides whether the provider or MPI serves a call. Both front ends base the decision on the
// same figures and pass the same buffers to the provider; this file computes both.
//
// The members of an operation may describe the same message by different layouts, so every layout is served.
// A contiguous layout in the host's memory is used in place. Any other layout is packed into memory that
// belongs to the call, and unpacked at the end. An accelerator's memory counts as not contiguous. A buffer
// may be on a device on a single member, so the decision must not depend on the buffer's place.
//
// Ownership: MccPreparedCall owns no memory. The front end owns the memory and releases it when the call
// ends.

#ifndef MCASTCOLL_MPI_CORE_PREPARED_CALL_H
#define MCASTCOLL_MPI_CORE_PREPARED_CALL_H

#include "core/collectives.h"
#include "core/layout.h"
#include "mcastcoll/mcastcoll.h"

// Counts, or displacements in units of the extent, of MPI's ordinary calls or of its large-count calls.
typedef struct {
    const void* at;
    bool large;
} MccList;

// A collective as the program calls it. A broadcast has only `out`; of a reduction's `in` only the base is
// set. Arguments that MPI ignores on this member may have any value.
typedef struct {
    MccCollective collective;
    MccLayout in, out;
    MccList counts, places;
    MPI_Op op;
    int root;
} MccArguments;

static inline int64_t mcc_item(MccList list, size_t index) {
    return list.large ? ((const MPI_Count*)list.at)[index] : ((const int*)list.at)[index];
}

// A bounce buffer for packed bytes, kept from call to call.
typedef struct {
    uint8_t* at;
    size_t bytes;
} MccBounce;
enum { kMccKeptBounce = 1 << 20 };
uint8_t* mcc_bounce_take(MccBounce* b, size_t bytes);
void mcc_bounce_trim(MccBounce* b, size_t kept_bytes);  // frees a buffer larger than kept_bytes

typedef enum {
    kMccNothing,
    kMccUnpack,       // `from` points to the packed bytes of the layout
    kMccUnpackBlocks  // `from` points to the packed blocks of all members, `block` bytes apart
} MccAfterwards;

// Distribution of a reduce_scatter's result, in elements.
typedef struct {
    int64_t total, before, own;
    bool even;  // as libfabric's reduce_scatter distributes: equal parts, and one more element for each of
                // the first members
} MccDistribution;

typedef struct {
    size_t members, self;
    struct fi_mcastcoll_request whole;
    size_t width;  // bytes per element
    size_t block;  // bytes per block, or 0 if the collective has no blocks
    MccAfterwards afterwards;
    MccDistribution distribution;
    // The fields below are set only if needed by the call.
    MccBounce* memory;  // during mcc_prepare_call() only
    const uint8_t* from;
    size_t bytes;
    MccLayout to;
    MccList counts, places;
} MccPreparedCall;

// Initialises an empty prepared call.
static inline void mcc_begin_prepared_call(MccPreparedCall* p, size_t members, size_t self) {
    p->members = members;
    p->self = self;
    p->whole = (struct fi_mcastcoll_request){.size = sizeof(p->whole), .datatype = FI_UINT8, .op = FI_NOOP};
    p->width = 1;
    p->block = 0;
    p->afterwards = kMccNothing;
    p->distribution.even = true;
}

// Returns the size by which the front end decides whether the provider or MPI serves the call: the packed
// bytes of a message, a vector or a block. The size is the same on every member, whatever their datatypes.
// For reductions, sets the element type and the operator in `p`, which the decision also needs. 0: the call
// moves no data. Negative: MPI must serve the call or report the error. The blocks of an allgatherv travel
// padded to the largest block; if too much of the traffic would be padding, the result is negative, too.
int64_t mcc_call_bytes(MccPreparedCall* p, const MccArguments* args);
// Prepares input, output and the remaining work for the provider, which shall serve the call by `collective`:
// the call's own collective, or for a reduce_scatter an allreduce, of whose result this member takes its own
// part. Packed bytes go to `memory`, which must stay until mcc_deliver(). Returns 0 or a positive FI_E code.
int mcc_prepare_call(MccPreparedCall* p, const MccArguments* args, enum fi_collective_op collective,
                     MccBounce* memory);

// Unpacks the result into the program's memory when the provider has finished. False: MPI failed to unpack.
bool mcc_deliver(const MccPreparedCall* p);

// Returns MPI's error class for a positive FI_E code.
int mcc_error_class(int error);

#endif
