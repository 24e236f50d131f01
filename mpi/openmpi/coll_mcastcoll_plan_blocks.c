// MPI_Allgather, Allgatherv, Gather, Scatter and Alltoall as jobs: blocks of bytes.
//
// Who serves a call is decided on the packed size of the blocks, which MPI makes equal on all ranks;
// datatypes may differ, so a rank with a derived one must not be alone with that. It packs what it sends and
// unpacks what it gets. The operations are not cut into segments: blocks above coll_mcastcoll_segment, and
// more than 1 GiB of them together, are left to others.
//
// The blocks of an allgatherv are filled up to the largest, unless more than a quarter of what travels would
// be filling. Where they go is each rank's own business, and has no part in the decision.

#include <string.h>

#include "coll_mcastcoll_job.h"
#include "ompi/constants.h"

enum { kMostFilling = 4 };  // of which it may be one
enum { kMostTogether = 1 << 30 };

static bool in_range(const MccJob* job, size_t block) {
    const MccComponent* c = &mca_coll_mcastcoll_component;
    const size_t most = c->max_message < kMostTogether ? c->max_message : kMostTogether;
    return block <= c->segment && block <= most / job->members;
}

static void begin(MccJob* job, enum fi_collective_op collective, size_t block, int root) {
    job->whole.collective = collective;
    job->whole.count = block;
    job->whole.root = (uint32_t)root;
    job->block = block;
}

// What the program has as `elements` elements, packed where it is not contiguous.
static const uint8_t* packed(const MccLayout* from, size_t elements, size_t bytes, uint8_t* memory) {
    const uint8_t* contiguous = mcc_contiguous(from->base, elements, from->type);
    if (NULL != contiguous) return contiguous;
    return mcc_pack(from, elements, memory, bytes) ? memory : NULL;
}

// Of who gets all blocks: packed where the local layouts are not contiguous, directly where they are.
static MccRoute collect(MccJob* job, const MccLayout* input, const MccLayout* result) {
    const size_t own = job->self * job->block;
    const bool in_place = MPI_IN_PLACE == (void*)input->base;
    uint8_t* blocks = mcc_contiguous(result->base, (size_t)result->count * job->members, result->type);
    if (NULL == blocks) {
        blocks = mcc_job_memory(job, job->block * job->members);
        if (NULL == blocks) return mcc_give_up(job, FI_ENOMEM);
        job->afterwards = kMccUnpackBlocks;
        job->from = blocks;
        job->to = *result;
        job->skip_self = in_place;
        MccLayout mine = *result;
        mine.base = mcc_place_of(result, job->self);
        if (in_place && !mcc_pack(&mine, (size_t)mine.count, blocks + own, job->block))
            return mcc_give_up(job, FI_EOTHER);
    }
    job->whole.buffer = blocks;
    // Where it is not contiguous it is packed to where it goes in the end.
    job->whole.input =
        in_place ? blocks + own : packed(input, (size_t)input->count, job->block, blocks + own);
    return NULL != job->whole.input ? kMccHere : mcc_give_up(job, FI_EOTHER);
}

MccRoute mcc_plan_allgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                            int result_count, ompi_datatype_t* result_type, MccJob* job) {
    const MccLayout from = {.base = (uint8_t*)(uintptr_t)input, .count = input_count, .type = input_type};
    const MccLayout to = {.base = result, .count = result_count, .type = result_type};
    const size_t block = mcc_bytes_of(&to, 0);
    if (0 == block) return kMccOver;  // on every rank, by the signature
    const MccRoute route = in_range(job, block) ? mcc_route(job, FI_ALLGATHER, block) : kMccPrevious;
    if (kMccHere != route) return route;
    begin(job, FI_ALLGATHER, block, 0);
    return collect(job, &from, &to);
}

// Whether the blocks stand one after the other, and all are as large as the largest.
static bool is_dense(const MccJob* job, const MccLayout* to) {
    for (size_t i = 0; i < job->members; ++i)
        if (to->counts[i] != to->counts[0] || to->places[i] != to->places[0] + (int)i * to->counts[0])
            return false;
    return true;
}

MccRoute mcc_plan_allgatherv(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                             const int* counts, const int* places, ompi_datatype_t* result_type,
                             MccJob* job) {
    MccLayout from = {.base = (uint8_t*)(uintptr_t)input, .count = input_count, .type = input_type};
    const MccLayout to = {.base = result, .type = result_type, .counts = counts, .places = places};
    size_t largest = 0, all = 0;
    for (size_t i = 0; i < job->members; ++i) {
        const size_t bytes = mcc_bytes_of(&to, i);
        all += bytes;
        if (bytes > largest) largest = bytes;
    }
    if (0 == largest) return kMccOver;
    if (!in_range(job, largest) || largest * job->members - all > largest * job->members / kMostFilling)
        return kMccPrevious;
    const MccRoute route = mcc_route(job, FI_ALLGATHER, largest);
    if (kMccHere != route) return route;
    begin(job, FI_ALLGATHER, largest, 0);
    if (is_dense(job, &to)) {
        MccLayout dense = {.count = counts[0], .type = result_type};
        dense.base = mcc_place_of(&to, 0);
        return collect(job, &from, &dense);
    }
    uint8_t* blocks = mcc_job_memory(job, largest * job->members);
    if (NULL == blocks) return mcc_give_up(job, FI_ENOMEM);
    job->afterwards = kMccUnpackBlocks;
    job->from = blocks;
    job->to = to;
    job->skip_self = MPI_IN_PLACE == input;
    if (job->skip_self) {
        from.base = mcc_place_of(&to, job->self);
        from.count = counts[job->self];
        from.type = result_type;
    }
    uint8_t* own = blocks + job->self * largest;
    const size_t own_bytes = mcc_bytes_of(&to, job->self);
    if (0 != own_bytes && !mcc_pack(&from, (size_t)from.count, own, own_bytes))
        return mcc_give_up(job, FI_EOTHER);
    memset(own + own_bytes, 0, largest - own_bytes);
    job->whole.buffer = blocks;
    job->whole.input = own;
    return kMccHere;
}

MccRoute mcc_plan_gather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                         int result_count, ompi_datatype_t* result_type, int root, MccJob* job) {
    const bool am_root = job->self == (size_t)root;
    const MccLayout from = {.base = (uint8_t*)(uintptr_t)input, .count = input_count, .type = input_type};
    const MccLayout to = {.base = result, .count = result_count, .type = result_type};
    const size_t block = mcc_bytes_of(am_root ? &to : &from, 0);
    if (0 == block) return kMccOver;
    const MccRoute route = in_range(job, block) ? mcc_route(job, FI_GATHER, block) : kMccPrevious;
    if (kMccHere != route) return route;
    begin(job, FI_GATHER, block, root);
    if (am_root) return collect(job, &from, &to);
    job->whole.input = mcc_contiguous(from.base, (size_t)from.count, from.type);
    if (NULL != job->whole.input) return kMccHere;
    uint8_t* memory = mcc_job_memory(job, block);
    if (NULL == memory) return mcc_give_up(job, FI_ENOMEM);
    job->whole.input = memory;
    return mcc_pack(&from, (size_t)from.count, memory, block) ? kMccHere : mcc_give_up(job, FI_EOTHER);
}

// Where one's own block goes: directly, or through memory.
static void receive_own(MccJob* job, const MccLayout* to, uint8_t* memory) {
    job->whole.buffer = mcc_contiguous(to->base, (size_t)to->count, to->type);
    if (NULL != job->whole.buffer) return;
    job->whole.buffer = memory;
    job->afterwards = kMccUnpackOwn;
    job->from = memory;
    job->bytes = job->block;
    job->to = *to;
}

MccRoute mcc_plan_scatter(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                          int result_count, ompi_datatype_t* result_type, int root, MccJob* job) {
    const bool am_root = job->self == (size_t)root, in_place = MPI_IN_PLACE == result;
    const MccLayout from = {.base = (uint8_t*)(uintptr_t)input, .count = input_count, .type = input_type};
    const MccLayout to = {.base = result, .count = result_count, .type = result_type};
    const size_t block = mcc_bytes_of(am_root ? &from : &to, 0),
                 elements = (size_t)input_count * job->members;
    if (0 == block) return kMccOver;
    const MccRoute route = in_range(job, block) ? mcc_route(job, FI_SCATTER, block) : kMccPrevious;
    if (kMccHere != route) return route;
    begin(job, FI_SCATTER, block, root);
    const bool packs = am_root && NULL == mcc_contiguous(from.base, elements, from.type);
    const bool unpacks = !(am_root && in_place) && NULL == mcc_contiguous(to.base, (size_t)to.count, to.type);
    uint8_t* memory = NULL;
    if (packs || unpacks) {
        memory = mcc_job_memory(job, block * ((packs ? job->members : 0) + 1));
        if (NULL == memory) return mcc_give_up(job, FI_ENOMEM);
    }
    if (am_root) {
        const uint8_t* blocks = packed(&from, elements, block * job->members, packs ? memory + block : NULL);
        if (NULL == blocks) return mcc_give_up(job, FI_EOTHER);
        job->whole.input = blocks;
        if (in_place) {
            job->whole.buffer = (uint8_t*)(uintptr_t)blocks + job->self * block;
            return kMccHere;
        }
    }
    receive_own(job, &to, memory);
    return kMccHere;
}

MccRoute mcc_plan_alltoall(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                           int result_count, ompi_datatype_t* result_type, MccJob* job) {
    const bool in_place = MPI_IN_PLACE == input;
    const MccLayout to = {.base = result, .count = result_count, .type = result_type};
    const MccLayout from =
        in_place ? to
                 : (MccLayout){.base = (uint8_t*)(uintptr_t)input, .count = input_count, .type = input_type};
    const size_t block = mcc_bytes_of(&to, 0), all = block * job->members;
    const size_t sent = (size_t)from.count * job->members, got = (size_t)to.count * job->members;
    if (0 == block) return kMccOver;
    const MccRoute route = in_range(job, block) ? mcc_route(job, FI_ALLTOALL, block) : kMccPrevious;
    if (kMccHere != route) return route;
    begin(job, FI_ALLTOALL, block, 0);
    job->whole.input = in_place ? NULL : mcc_contiguous(from.base, sent, from.type);
    job->whole.buffer = mcc_contiguous(to.base, got, to.type);
    const bool packs = NULL == job->whole.input, unpacks = NULL == job->whole.buffer;
    if (!packs && !unpacks) return kMccHere;
    uint8_t* memory = mcc_job_memory(job, packs && unpacks ? 2 * all : all);
    if (NULL == memory) return mcc_give_up(job, FI_ENOMEM);
    if (packs) {
        if (!mcc_pack(&from, sent, memory, all)) return mcc_give_up(job, FI_EOTHER);
        job->whole.input = memory;
        memory += all;
    }
    if (!unpacks) return kMccHere;
    job->whole.buffer = memory;
    job->afterwards = kMccUnpackBlocks;
    job->skip_self = false;
    job->from = memory;
    job->to = to;
    return kMccHere;
}
