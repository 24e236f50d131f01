// A plan: one collective of MPI in the form in which the provider takes it, and what is left to do
// afterwards.
//
// Why it exists: both faces decide for themselves who serves a call, but what they hand over is the same.
// Members of one operation may describe the same message differently, so every layout is served: contiguous
// ones where they lie, the others packed into memory that goes with the call, and unpacked when it is over.
//
// Who owns what: a plan owns nothing. Its memory is the face's, which lets go of it when the call ends.

#ifndef MCASTCOLL_MPI_CORE_PLAN_H
#define MCASTCOLL_MPI_CORE_PLAN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcastcoll/mcastcoll.h"

// So many elements, in the program's memory.
typedef struct {
    const void* base;
    int64_t count;
    MPI_Datatype type;
} MccLayout;

// Counts, or displacements in extents, of MPI's ordinary calls or of its large ones.
typedef struct {
    const void* at;
    bool large;
} MccList;

static inline int64_t mcc_item(MccList list, size_t index) {
    return list.large ? ((const MPI_Count*)list.at)[index] : ((const int*)list.at)[index];
}

static inline bool mcc_is_in_place(const void* base) {
    return MPI_IN_PLACE == base;
}

typedef struct MccPlan MccPlan;

// What each MPI does in its own way.
typedef struct {
    size_t (*width)(MPI_Datatype type);  // packed bytes of an element; 0 for what is no datatype, too
    ptrdiff_t (*extent)(MPI_Datatype type);
    // Where the packed bytes lie as they are, or NULL.
    const uint8_t* (*contiguous)(const MccLayout* layout);
    bool (*pack)(const MccLayout* from, uint8_t* to, size_t bytes);
    bool (*unpack)(const MccLayout* to, const uint8_t* from, size_t bytes);
    uint8_t* (*memory)(MccPlan* plan, size_t bytes);  // once for each plan; NULL without memory
} MccFace;

typedef enum {
    kMccNothing,
    kMccUnpack,        // `from` has the packed bytes of the layout
    kMccUnpackBlocks,  // `from` has everybody's packed blocks, each `block` bytes after the other
    kMccCopy           // `from` has bytes for the layout's base
} MccAfterwards;

struct MccPlan {
    const MccFace* face;
    size_t members, self;
    struct fi_mcastcoll_request whole;
    size_t block;  // bytes, where there are blocks
    MccAfterwards afterwards;
    // What follows is set only where it is needed.
    const uint8_t* from;
    size_t bytes;
    MccLayout to;
    MccList counts, places;
};

// A plan of nothing yet.
static inline void mcc_begin_plan(MccPlan* p, const MccFace* face, size_t members, size_t self) {
    p->face = face;
    p->members = members;
    p->self = self;
    p->whole = (struct fi_mcastcoll_request){.size = sizeof(p->whole), .datatype = FI_UINT8, .op = FI_NOOP};
    p->afterwards = kMccNothing;
}

// What goes out, what comes in, and what is left to do. To be called when it is
// decided that the plan is served. 0, or a positive FI_E code. Of `in` and `out` only what MPI looks at on
// this member is.
int mcc_lay_bcast(MccPlan* p, const MccLayout* layout, size_t bytes, int root);
// From here on `block` has to be set, from what the member knows: out's, but gather's but at the root and
// scatter's at the root.
int mcc_lay_allgather(MccPlan* p, const MccLayout* in, const MccLayout* out);
int mcc_lay_gather(MccPlan* p, const MccLayout* in, const MccLayout* out, int root);
int mcc_lay_scatter(MccPlan* p, const MccLayout* in, const MccLayout* out, int root);
int mcc_lay_alltoall(MccPlan* p, const MccLayout* in, const MccLayout* out);
// Blocks of unequal sizes travel as blocks of the largest size. False: too much of what travels would be
// filling, or MPI should complain; the same on all members. The count of `out` is that of nothing.
bool mcc_measure_blocks(const MccPlan* p, const MccLayout* out, MccList counts, size_t* largest);
int mcc_lay_allgatherv(MccPlan* p, const MccLayout* in, const MccLayout* out, MccList counts, MccList places);

// An allreduce or, with a root, a reduce.
void mcc_lay_reduction(MccPlan* p, enum fi_collective_op collective, const void* in, void* out, int root);
// How a reduce_scatter's counts deal the result out, in elements.
typedef struct {
    int64_t total, before, own;
    bool even;  // as libfabric's reduce_scatter does: as many for everybody, one more for each of the first
                // few
} MccDeal;
// False: MPI should complain.
bool mcc_deal_counts(const MccPlan* p, MccList counts, MccDeal* deal);
bool mcc_deal_alike(const MccPlan* p, int64_t count, MccDeal* deal);
// `whole`: as an allreduce, of which one's own part is taken.
int mcc_lay_deal(MccPlan* p, const MccDeal* deal, const void* in, void* out, size_t width, bool whole);

// Once the provider is done: puts what came in where it belongs. False: MPI does not unpack it.
bool mcc_deliver(const MccPlan* p);

// What MPI calls a positive FI_E code.
int mcc_error_class(int error);

// Packed bytes that stay with whoever calls often.
typedef struct {
    uint8_t* at;
    size_t bytes;
} MccBounce;
enum { kMccKeptBounce = 1 << 20 };
uint8_t* mcc_bounce_take(MccBounce* b, size_t bytes);
void mcc_bounce_trim(MccBounce* b, size_t kept_bytes);  // frees it if it has more

#endif
