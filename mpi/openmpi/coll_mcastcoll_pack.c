// Derived datatypes: their bytes go through a bounce buffer, packed by Open MPI's convertor.

#include "coll_mcastcoll.h"

// The module's is kept for the next call unless it is large.
uint8_t* mcc_memory(MccPlan* plan, size_t bytes) {
    MccJob* job = (MccJob*)plan;
    if (kMccBlocking == job->form) return mcc_bounce_take(&job->module->bounce, bytes);
    job->memory = malloc(0 == bytes ? 1 : bytes);
    return job->memory;
}

size_t mcc_width(ompi_datatype_t* type) {
    size_t width = 0;
    ompi_datatype_type_size(type, &width);
    return width;
}

ptrdiff_t mcc_extent(ompi_datatype_t* type) {
    ptrdiff_t lower, extent;
    ompi_datatype_get_extent(type, &lower, &extent);
    return extent;
}

static bool prepare(opal_convertor_t* convertor, bool packs, const MccLayout* layout) {
    const int rc = (packs ? opal_convertor_copy_and_prepare_for_send
                          : opal_convertor_copy_and_prepare_for_recv)(
        ompi_mpi_local_convertor, &layout->type->super, (size_t)layout->count, layout->base, 0, convertor);
    return OPAL_SUCCESS == rc;
}

// The next packed bytes, into memory that has `*filled` and room for more until there are `wanted`, or out of
// it. False if the convertor fails.
static bool convert(opal_convertor_t* convertor, bool packs, uint8_t* memory, size_t room, size_t* filled,
                    size_t wanted) {
    while (*filled < wanted) {
        struct iovec iov = {.iov_base = memory + *filled, .iov_len = room - *filled};
        uint32_t iov_count = 1;
        size_t moved = iov.iov_len;
        const int rc = packs ? opal_convertor_pack(convertor, &iov, &iov_count, &moved)
                             : opal_convertor_unpack(convertor, &iov, &iov_count, &moved);
        if (rc < 0 || 0 == moved) return false;
        *filled += moved;
    }
    return true;
}

static bool convert_all(const MccLayout* layout, bool packs, uint8_t* memory, size_t bytes) {
    size_t filled = 0;
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool good =
        prepare(&convertor, packs, layout) && convert(&convertor, packs, memory, bytes, &filled, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

bool mcc_pack(const MccLayout* from, uint8_t* to, size_t bytes) {
    return convert_all(from, true, to, bytes);
}

bool mcc_unpack(const MccLayout* to, const uint8_t* from, size_t bytes) {
    return convert_all(to, false, (uint8_t*)(uintptr_t)from, bytes);
}

const uint8_t* mcc_contiguous(const MccLayout* layout) {
    ptrdiff_t gap = 0;
    if (layout->count > INT32_MAX ||
        !ompi_datatype_is_contiguous_memory_layout(layout->type, (int32_t)layout->count))
        return NULL;
    (void)opal_datatype_span(&layout->type->super, (size_t)layout->count, &gap);
    return (const uint8_t*)layout->base + gap;
}

bool mcc_finish_job(MccJob* job, bool good) {
    good = good && mcc_deliver(&job->plan);
    if (kMccBlocking == job->form) {
        mcc_bounce_trim(&job->module->bounce, kMccKeptBounce);
        return good;
    }
    if (mcc_unpacks_derived(job)) OBJ_RELEASE(job->plan.to.type);
    free(job->memory);
    free(job->vectors);
    job->memory = NULL;
    job->vectors = NULL;
    return good;
}

// A large blocking broadcast of a derived datatype: packed and unpacked one segment at a time, so that the
// bounce buffer stays a segment's size.
int mcc_run_streamed(MccJob* job) {
    // The convertor stops between basic elements; so much more completes any part.
    enum { kPackSlack = 4096 };
    const size_t segment = mca_coll_mcastcoll_component.longest, room = segment + kPackSlack;
    const bool am_root = job->plan.self == job->plan.whole.root;
    size_t filled = 0;
    uint8_t* bounce = mcc_memory(&job->plan, room);
    if (NULL == bounce)
        return FI_ENOMEM;  // the others' operation ends with the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int error = prepare(&convertor, am_root, &job->plan.to) ? 0 : FI_EOTHER;
    for (size_t offset = 0; 0 == error && offset < job->plan.whole.count; offset += segment) {
        struct fi_mcastcoll_request part = mcc_part(job, offset);
        part.buffer = bounce;
        if (am_root && !convert(&convertor, true, bounce, room, &filled, part.count)) error = FI_EOTHER;
        if (0 == error) error = mcc_run(job->module->group, &part);
        if (0 == error && !am_root && !convert(&convertor, false, bounce, part.count, &filled, part.count))
            error = FI_EOTHER;
        if (0 != error) break;
        filled -= part.count;
        memmove(bounce, bounce + part.count, filled);
    }
    OBJ_DESTRUCT(&convertor);
    return error;
}
