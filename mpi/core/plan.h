// A plan: one call of MPI in the form in which the provider takes it, and what is left to do afterwards.
//
// Why it exists: both faces decide for themselves who serves a call, but what they decide on and what they
// hand over is the same.
// Members of one operation may describe the same message differently, so every layout is served: contiguous
// ones in the host's memory where they lie, the others packed into memory that goes with the call, and
// unpacked when it is over. An accelerator's memory counts as not contiguous. A buffer may be on a device on
// one member only, so the choice of who serves the call must not depend on it.
//
// Who owns what: a plan owns nothing. Its memory is the face's, which lets go of it when the call ends.

#ifndef MCASTCOLL_MPI_CORE_PLAN_H
#define MCASTCOLL_MPI_CORE_PLAN_H

#include "core/collectives.h"
#include "core/layout.h"
#include "mcastcoll/mcastcoll.h"

// Counts, or displacements in extents, of MPI's ordinary calls or of its large ones.
typedef struct {
    const void* at;
    bool large;
} MccList;

// A collective as the program calls it. Of a broadcast there is only `out`, of a reduction `in` is a base.
// What MPI does not look at on this member may be anything.
typedef struct {
    MccCollective collective;
    MccLayout in, out;
    MccList counts, places;
    MPI_Op op;
    int root;
} MccCall;

static inline int64_t mcc_item(MccList list, size_t index) {
    return list.large ? ((const MPI_Count*)list.at)[index] : ((const int*)list.at)[index];
}

// Packed bytes that stay with whoever calls often.
typedef struct {
    uint8_t* at;
    size_t bytes;
} MccBounce;
enum { kMccKeptBounce = 1 << 20 };
uint8_t* mcc_bounce_take(MccBounce* b, size_t bytes);
void mcc_bounce_trim(MccBounce* b, size_t kept_bytes);  // frees it if it has more

typedef enum {
    kMccNothing,
    kMccUnpack,       // `from` has the packed bytes of the layout
    kMccUnpackBlocks  // `from` has everybody's packed blocks, each `block` bytes after the other
} MccAfterwards;

// How a reduce_scatter deals the result out, in elements.
typedef struct {
    int64_t total, before, own;
    bool even;  // as libfabric's reduce_scatter does: as many for everybody, one more for each of the first
                // few
} MccDeal;

typedef struct {
    size_t members, self;
    struct fi_mcastcoll_request whole;
    size_t width;  // bytes of an element
    size_t block;  // bytes, where there are blocks, or 0
    MccAfterwards afterwards;
    MccDeal deal;
    // What follows is set only where it is needed.
    MccBounce* memory;  // while it is laid
    const uint8_t* from;
    size_t bytes;
    MccLayout to;
    MccList counts, places;
} MccPlan;

// A plan of nothing yet.
static inline void mcc_begin_plan(MccPlan* p, size_t members, size_t self) {
    p->members = members;
    p->self = self;
    p->whole = (struct fi_mcastcoll_request){.size = sizeof(p->whole), .datatype = FI_UINT8, .op = FI_NOOP};
    p->width = 1;
    p->block = 0;
    p->afterwards = kMccNothing;
    p->deal.even = true;
}

// What decides who serves the call, the same on all members, whatever their datatypes: packed bytes of a
// message, a vector or a block; for reductions elements and operator, too. 0: nothing moves. Negative: MPI
// should serve it, or complain. Of an allgatherv, whose blocks travel as blocks of the largest size, also
// where too much of what travels would be filling.
int64_t mcc_call_bytes(MccPlan* p, const MccCall* call);
// What goes out, what comes in, and what is left to do. To be called next, when it is decided that the plan
// is served, as this one of the provider's: the call's own, or of a reduce_scatter an allreduce, of which
// one's own part is taken. What is packed goes to `memory`, which stays until it is delivered. 0, or a
// positive FI_E code.
int mcc_lay(MccPlan* p, const MccCall* call, enum fi_collective_op collective, MccBounce* memory);

// Once the provider is done: puts what came in where it belongs. False: MPI does not unpack it.
bool mcc_deliver(const MccPlan* p);

// What MPI calls a positive FI_E code.
int mcc_error_class(int error);

#endif
