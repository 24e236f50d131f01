// The collectives with a block per member are described by the packed size of a block, which is the same on
// every member, even if datatypes differ. n consecutive blocks are a layout of n times as many elements, so n
// blocks are packed and unpacked at once.

#include "core/prepared_call.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

// At most one part in four of the traffic may be padding. The break-even point is not measured. MPI's own
// allgatherv sends no padding, so it is the safer choice above this limit.
enum { kPaddingOneIn = 4 };

static bool is_in_place(const void* base) {
    return MPI_IN_PLACE == base;
}

// Returns the layout of `members` consecutive blocks.
static MccLayout times(const MccLayout* block, size_t members) {
    MccLayout all = *block;
    all.count *= (int64_t)members;
    return all;
}

static MccLayout advance(const MccLayout* layout, int64_t elements, int64_t count) {
    return (MccLayout){.base = (const uint8_t*)layout->base + elements * mcc_extent(layout->type),
                       .count = count,
                       .type = layout->type};
}

// Returns the packed bytes in place, or packs into `memory`.
static const uint8_t* packed(const MccLayout* from, size_t bytes, uint8_t* memory) {
    const uint8_t* contiguous = mcc_contiguous(from);
    if (NULL != contiguous) return contiguous;
    return mcc_pack(from, memory, bytes) ? memory : NULL;
}

// Directs the result to `memory`, from which mcc_deliver() unpacks.
static void unpack_later(MccPreparedCall* p, const MccLayout* to, uint8_t* memory, size_t bytes) {
    p->whole.buffer = memory;
    p->afterwards = kMccUnpack;
    p->from = memory;
    p->bytes = bytes;
    p->to = *to;
}

// Sets input and output of the request: the layout (NULL: none) itself if it is contiguous, or else bounce
// memory. Packs the input into bounce memory; mcc_deliver() unpacks the output.
static int exchange(MccPreparedCall* p, const MccLayout* from, size_t bytes_out, const MccLayout* to,
                    size_t bytes_in) {
    p->whole.input = NULL != from ? mcc_contiguous(from) : NULL;
    p->whole.buffer = NULL != to ? (uint8_t*)(uintptr_t)mcc_contiguous(to) : NULL;
    if (p->whole.input == p->whole.buffer)
        p->whole.input = NULL;  // in place: output must not overwrite input
    const bool packs = NULL != from && NULL == p->whole.input,
               unpacks = NULL != to && NULL == p->whole.buffer;
    if (!packs && !unpacks) return 0;
    uint8_t* memory = mcc_bounce_take(p->memory, (packs ? bytes_out : 0) + (unpacks ? bytes_in : 0));
    if (NULL == memory) return FI_ENOMEM;
    if (packs) {
        if (!mcc_pack(from, memory, bytes_out)) return FI_EOTHER;
        p->whole.input = memory;
        memory += bytes_out;
    }
    if (unpacks) unpack_later(p, to, memory, bytes_in);
    return 0;
}

static int prepare_bcast(MccPreparedCall* p, const MccLayout* layout, bool at_root) {
    const size_t bytes = p->whole.count;
    if (!at_root) return exchange(p, NULL, 0, layout, bytes);
    const int error = exchange(p, layout, bytes, NULL, 0);
    p->whole.buffer = (uint8_t*)(uintptr_t)p->whole.input;
    p->whole.input = NULL;
    return error;
}

// Prepares a member that receives the blocks of all members: directly into the result if its layout is
// contiguous, or else into bounce memory.
static int collect(MccPreparedCall* p, const MccLayout* in, const MccLayout* out) {
    const size_t own = p->self * p->block, all = p->members * p->block;
    const bool in_place = is_in_place(in->base);
    const MccLayout result = times(out, p->members);
    uint8_t* blocks = (uint8_t*)(uintptr_t)mcc_contiguous(&result);
    p->whole.buffer = blocks;
    if (NULL == blocks) {
        blocks = mcc_bounce_take(p->memory, all);
        if (NULL == blocks) return FI_ENOMEM;
        unpack_later(p, &result, blocks, all);
        const MccLayout mine = advance(out, (int64_t)p->self * out->count, out->count);
        if (in_place && !mcc_pack(&mine, blocks + own, p->block)) return FI_EOTHER;
    }
    // A non-contiguous input is packed at its position in the result.
    p->whole.input = in_place ? blocks + own : packed(in, p->block, blocks + own);
    return NULL != p->whole.input ? 0 : FI_EOTHER;
}

// Finds the size of the largest block. False, on every member alike: too much of the traffic would be
// padding, or the arguments are invalid, which MPI reports.
static bool measure_blocks(const MccPreparedCall* p, const MccArguments* args, size_t* largest) {
    const int64_t width = (int64_t)mcc_width(args->out.type), members = (int64_t)p->members;
    int64_t max = 0, sum = 0;
    if (NULL == args->counts.at || NULL == args->places.at) return false;
    for (size_t i = 0; 0 != width && i < p->members; ++i) {
        const int64_t count = mcc_item(args->counts, i);
        if (count < 0 || count > INT64_MAX / 4 / width / members) return false;
        max = count > max ? count : max;
        sum += count;
    }
    *largest = (size_t)(max * width);
    return (max * members - sum) * width <= max * members * width / kPaddingOneIn;
}

// Returns whether the blocks have the same size and follow each other.
static bool is_dense(const MccPreparedCall* p, MccList counts, MccList places) {
    const int64_t count = mcc_item(counts, 0), place = mcc_item(places, 0);
    for (size_t i = 1; i < p->members; ++i)
        if (mcc_item(counts, i) != count || mcc_item(places, i) != place + (int64_t)i * count) return false;
    return true;
}

static int prepare_allgatherv(MccPreparedCall* p, const MccArguments* args) {
    const MccLayout *in = &args->in, *out = &args->out;
    const MccList counts = args->counts, places = args->places;
    if (is_dense(p, counts, places)) {
        const MccLayout first = advance(out, mcc_item(places, 0), mcc_item(counts, 0));
        return collect(p, in, &first);
    }
    uint8_t* blocks = mcc_bounce_take(p->memory, p->members * p->block);
    if (NULL == blocks) return FI_ENOMEM;
    p->whole.buffer = blocks;
    p->afterwards = kMccUnpackBlocks;
    p->from = blocks;
    p->to = *out;
    p->counts = counts;
    p->places = places;
    uint8_t* own = blocks + p->self * p->block;
    const int64_t count = mcc_item(counts, p->self);
    const size_t bytes = (size_t)count * mcc_width(out->type);
    const MccLayout mine = is_in_place(in->base) ? advance(out, mcc_item(places, p->self), count) : *in;
    if (bytes == p->block) {
        p->whole.input = packed(&mine, bytes, own);
        return NULL != p->whole.input ? 0 : FI_EOTHER;
    }
    p->whole.input = own;
    memset(own + bytes, 0, p->block - bytes);
    return 0 == bytes || mcc_pack(&mine, own, bytes) ? 0 : FI_EOTHER;
}

static int prepare_scatter(MccPreparedCall* p, const MccLayout* in, const MccLayout* out, bool at_root) {
    if (!at_root) return exchange(p, NULL, 0, out, p->block);
    const bool in_place = is_in_place(out->base);
    const MccLayout source = times(in, p->members);
    const int error = exchange(p, &source, p->members * p->block, in_place ? NULL : out, p->block);
    // With MPI_IN_PLACE, the root's own block stays where it is: input and output are the same.
    if (0 == error && in_place) p->whole.buffer = (uint8_t*)(uintptr_t)p->whole.input + p->self * p->block;
    return error;
}

static int prepare_alltoall(MccPreparedCall* p, const MccLayout* in, const MccLayout* out) {
    const size_t all = p->members * p->block;
    const MccLayout result = times(out, p->members);
    const MccLayout source = is_in_place(in->base) ? result : times(in, p->members);
    return exchange(p, &source, all, &result, all);
}

// Reductions. The choice between provider and MPI depends on elements, operator and counts, which MPI
// requires to be the same on every member. The vectors are contiguous, so the provider reads and writes the
// program's buffers, unless a buffer is on a device.

static MccLayout vector_in(const MccPreparedCall* p, const MccArguments* args) {
    return (MccLayout){.base = is_in_place(args->in.base) ? args->out.base : args->in.base,
                       .count = (int64_t)p->whole.count,
                       .type = args->out.type};
}

// A vector on a device is packed into `memory`, and a result for a device is unpacked from there. If both are
// on a device, the reduction runs in place in `memory`.
static int prepare_reduction(MccPreparedCall* p, const MccArguments* args) {
    const MccLayout in = vector_in(p, args);
    const MccLayout out = {.base = args->out.base, .count = in.count, .type = in.type};
    const bool gets = FI_REDUCE != p->whole.collective || p->self == (size_t)args->root;
    const bool packs = mcc_is_device(in.base);
    const bool unpacks = gets && (in.base == out.base ? packs : mcc_is_device(out.base));
    const size_t bytes = p->whole.count * p->width;
    p->whole.input = in.base;
    p->whole.buffer = gets ? (void*)(uintptr_t)out.base : NULL;
    if (!packs && !unpacks) return 0;
    uint8_t* memory = mcc_bounce_take(p->memory, bytes);
    if (NULL == memory) return FI_ENOMEM;
    if (packs) {
        if (!mcc_pack(&in, memory, bytes)) return FI_EOTHER;
        p->whole.input = memory;
    }
    if (unpacks) unpack_later(p, &out, memory, bytes);
    return 0;
}

// Stores the distribution of a reduce_scatter's result by the counts. False: the counts are invalid, which
// MPI reports.
static bool distribute_by_counts(MccPreparedCall* p, MccList counts) {
    const int64_t members = (int64_t)p->members;
    if (NULL == counts.at) return false;
    MccDistribution parts = {.even = true, .own = mcc_item(counts, p->self)};
    for (size_t i = 0; i < p->members; ++i) {
        const int64_t count = mcc_item(counts, i);
        if (count < 0 || count > INT64_MAX / 2 - parts.total) return false;
        if (i == p->self) parts.before = parts.total;
        parts.total += count;
    }
    for (int64_t i = 0; i < members; ++i) {
        const int64_t slice = parts.total / members + (i < parts.total % members);
        parts.even = parts.even && mcc_item(counts, (size_t)i) == slice;
    }
    p->distribution = parts;
    return true;
}

static bool distribute_evenly(MccPreparedCall* p, int64_t count) {
    const int64_t members = (int64_t)p->members;
    if (count < 0 || count > INT64_MAX / 2 / members) return false;
    p->distribution = (MccDistribution){
        .total = count * members, .before = count * (int64_t)p->self, .own = count, .even = true};
    return true;
}

// The provider writes the slice to `memory` in three cases: for MPI_IN_PLACE, where slice and vector share
// their address, which the provider does not support; for an empty slice, which may have no address; and for
// a slice on a device. A vector on a device is packed into `memory`: behind the slice, or for an allreduce
// where the result goes.
static int prepare_reduce_scatter(MccPreparedCall* p, const MccArguments* args) {
    const MccDistribution* parts = &p->distribution;
    const bool whole = FI_ALLREDUCE == p->whole.collective;
    const MccLayout in = vector_in(p, args);
    const MccLayout out = {.base = args->out.base, .count = parts->own, .type = in.type};
    const bool packs = mcc_is_device(in.base);
    const bool unpacks = whole || in.base == out.base || 0 == parts->own || mcc_is_device(out.base);
    const size_t slice = (size_t)(whole ? parts->total : unpacks ? parts->own + 1 : 0) * p->width;
    const size_t vector = (size_t)parts->total * p->width;
    p->whole.input = in.base;
    p->whole.buffer = (void*)(uintptr_t)out.base;
    if (!packs && !unpacks) return 0;
    uint8_t* memory = mcc_bounce_take(p->memory, slice + (packs && !whole ? vector : 0));
    if (NULL == memory) return FI_ENOMEM;
    if (packs) {
        uint8_t* packed_vector = whole ? memory : memory + slice;
        if (!mcc_pack(&in, packed_vector, vector)) return FI_EOTHER;
        p->whole.input = packed_vector;
    }
    if (!unpacks) return 0;
    p->whole.buffer = memory;
    if (0 == parts->own) return 0;
    unpack_later(p, &out, memory, (size_t)parts->own * p->width);
    if (whole) p->from += (size_t)parts->before * p->width;
    return 0;
}

static int64_t bytes_of(const MccLayout* layout) {
    const int64_t width = (int64_t)mcc_width(layout->type);
    if (layout->count < 0 || (0 != width && layout->count > INT64_MAX / 4 / width)) return -1;
    return layout->count * width;
}

static int64_t block_of(MccPreparedCall* p, const MccLayout* block) {
    const int64_t bytes = bytes_of(block);
    p->block = (size_t)bytes;
    return bytes;
}

// Returns the bytes of a vector of `count` elements and sets the request's datatype and operator. Negative:
// MPI must serve the call.
static int64_t vector_of(MccPreparedCall* p, const MccArguments* args, int64_t count) {
    if (count <= 0) return count;
    if (!mcc_reduction(args->out.type, args->op, &p->whole.datatype, &p->whole.op, &p->width)) return -1;
    p->whole.count = (size_t)count;
    return count <= INT64_MAX / (int64_t)p->width ? count * (int64_t)p->width : -1;
}

int64_t mcc_call_bytes(MccPreparedCall* p, const MccArguments* args) {
    const bool at_root = p->self == (size_t)args->root;
    switch (args->collective) {
        case kMccBarrier:
            p->whole.datatype = FI_VOID;
            return 0;
        case kMccBcast:
            return bytes_of(&args->out);
        case kMccGather:
            return block_of(p, at_root ? &args->out : &args->in);
        case kMccScatter:
            return block_of(p, at_root ? &args->in : &args->out);
        case kMccAllgatherv:
            return measure_blocks(p, args, &p->block) ? (int64_t)p->block : -1;
        case kMccAllreduce:
        case kMccReduce:
            return vector_of(p, args, args->out.count);
        case kMccReduceScatter:
            return distribute_by_counts(p, args->counts) ? vector_of(p, args, p->distribution.total) : -1;
        case kMccReduceScatterBlock:
            return distribute_evenly(p, args->out.count) ? vector_of(p, args, p->distribution.total) : -1;
        default:  // allgather, alltoall
            return block_of(p, &args->out);
    }
}

int mcc_prepare_call(MccPreparedCall* p, const MccArguments* args, enum fi_collective_op collective,
                     MccBounce* memory) {
    const bool at_root = p->self == (size_t)args->root;
    p->memory = memory;
    p->whole.collective = collective;
    p->whole.root = (uint32_t)args->root;
    if (0 != p->block) p->whole.count = p->block;
    switch (args->collective) {
        case kMccBcast:
            p->whole.count = (size_t)bytes_of(&args->out);
            return prepare_bcast(p, &args->out, at_root);
        case kMccAllgather:
            return collect(p, &args->in, &args->out);
        case kMccAllgatherv:
            return prepare_allgatherv(p, args);
        case kMccGather:
            return at_root ? collect(p, &args->in, &args->out) : exchange(p, &args->in, p->block, NULL, 0);
        case kMccScatter:
            return prepare_scatter(p, &args->in, &args->out, at_root);
        case kMccAlltoall:
            return prepare_alltoall(p, &args->in, &args->out);
        case kMccReduceScatter:
        case kMccReduceScatterBlock:
            return prepare_reduce_scatter(p, args);
        case kMccAllreduce:
        case kMccReduce:
            return prepare_reduction(p, args);
        default:  // barrier
            return 0;
    }
}

static bool unpack_blocks(const MccPreparedCall* p) {
    const size_t width = mcc_width(p->to.type);
    for (size_t i = 0; i < p->members; ++i) {
        const MccLayout block = advance(&p->to, mcc_item(p->places, i), mcc_item(p->counts, i));
        const size_t bytes = (size_t)block.count * width;
        if (0 != bytes && !mcc_unpack(&block, p->from + i * p->block, bytes)) return false;
    }
    return true;
}

bool mcc_deliver(const MccPreparedCall* p) {
    switch (p->afterwards) {
        case kMccNothing:
            return true;
        case kMccUnpack:
            return mcc_unpack(&p->to, p->from, p->bytes);
        case kMccUnpackBlocks:
            return unpack_blocks(p);
    }
    return false;
}

int mcc_error_class(int error) {
    switch (error) {
        case FI_ENOMEM:
            return MPI_ERR_NO_MEM;
        case FI_EMSGSIZE:
        case FI_ETRUNC:
            return MPI_ERR_TRUNCATE;
#ifdef MPI_ERR_PROC_FAILED
        case FI_ECONNRESET:
        case FI_ENOTCONN:
        case FI_EHOSTUNREACH:
        case FI_EHOSTDOWN:
        case FI_ETIMEDOUT:
            return MPI_ERR_PROC_FAILED;
#endif
        default:
            return MPI_ERR_OTHER;
    }
}

uint8_t* mcc_bounce_take(MccBounce* b, size_t bytes) {
    if (b->bytes < bytes) {
        free(b->at);
        b->at = malloc(bytes);
        b->bytes = NULL != b->at ? bytes : 0;
    }
    return b->at;
}

void mcc_bounce_trim(MccBounce* b, size_t kept_bytes) {
    if (b->bytes <= kept_bytes) return;
    free(b->at);
    *b = (MccBounce){0};
}
