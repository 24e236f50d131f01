// Derived datatypes: their bytes go through a bounce buffer, packed by Open MPI's convertor.

#include "coll_mcastcoll.h"

// The module's is kept for the next call unless it is large.
static uint8_t* memory(MccPlan* plan, size_t bytes) {
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

static ptrdiff_t extent_of(ompi_datatype_t* type) {
    ptrdiff_t lower, extent;
    ompi_datatype_get_extent(type, &lower, &extent);
    return extent;
}

static bool prepare(opal_convertor_t* convertor, bool to_send, const MccLayout* layout) {
    const int rc = (to_send ? opal_convertor_copy_and_prepare_for_send
                            : opal_convertor_copy_and_prepare_for_recv)(
        ompi_mpi_local_convertor, &layout->type->super, (size_t)layout->count, layout->base, 0, convertor);
    return OPAL_SUCCESS == rc;
}

// Adds packed bytes to the bounce buffer until it is full or the message ends. False if the convertor fails.
static bool pack_more(opal_convertor_t* convertor, uint8_t* bounce, size_t room, size_t* filled,
                      size_t wanted) {
    while (*filled < wanted) {
        struct iovec iov = {.iov_base = bounce + *filled, .iov_len = room - *filled};
        uint32_t iov_count = 1;
        size_t packed = iov.iov_len;
        if (opal_convertor_pack(convertor, &iov, &iov_count, &packed) < 0 || 0 == packed) return false;
        *filled += packed;
    }
    return true;
}

static bool unpack_part(opal_convertor_t* convertor, const uint8_t* bounce, size_t bytes) {
    size_t offset = 0;
    while (offset < bytes) {
        struct iovec iov = {.iov_base = (void*)(uintptr_t)(bounce + offset), .iov_len = bytes - offset};
        uint32_t iov_count = 1;
        size_t unpacked = iov.iov_len;
        if (opal_convertor_unpack(convertor, &iov, &iov_count, &unpacked) < 0 || 0 == unpacked) return false;
        offset += unpacked;
    }
    return true;
}

static const uint8_t* contiguous(const MccLayout* layout) {
    ptrdiff_t gap = 0;
    if (layout->count > INT32_MAX ||
        !ompi_datatype_is_contiguous_memory_layout(layout->type, (int32_t)layout->count))
        return NULL;
    (void)opal_datatype_span(&layout->type->super, (size_t)layout->count, &gap);
    return (const uint8_t*)layout->base + gap;
}

static bool pack(const MccLayout* from, uint8_t* to, size_t bytes) {
    size_t filled = 0;
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool good = prepare(&convertor, true, from) && pack_more(&convertor, to, bytes, &filled, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

static bool unpack(const MccLayout* to, const uint8_t* from, size_t bytes) {
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool good = prepare(&convertor, false, to) && unpack_part(&convertor, from, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

const MccFace mcc_open_mpi = {.width = mcc_width,
                              .extent = extent_of,
                              .contiguous = contiguous,
                              .pack = pack,
                              .unpack = unpack,
                              .memory = memory};

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
static int run_segments(MccJob* job, opal_convertor_t* convertor, uint8_t* bounce, size_t room) {
    const size_t segment = mca_coll_mcastcoll_component.longest, bytes = job->plan.whole.count;
    const bool am_root = job->plan.self == job->plan.whole.root;
    size_t filled = 0;
    for (size_t offset = 0; offset < bytes; offset += segment) {
        struct fi_mcastcoll_request part = mcc_part(job, offset);
        part.buffer = bounce;
        if (am_root && !pack_more(convertor, bounce, room, &filled, part.count)) return FI_EOTHER;
        const int error = mcc_run(job->module->group, &part);
        if (0 != error) return error;
        if (!am_root && !unpack_part(convertor, bounce, part.count)) return FI_EOTHER;
        if (am_root) {
            filled -= part.count;
            memmove(bounce, bounce + part.count, filled);
        }
    }
    return 0;
}

int mcc_run_streamed(MccJob* job) {
    // The convertor stops between basic elements; so much more completes any part.
    enum { kPackSlack = 4096 };
    const size_t room = mca_coll_mcastcoll_component.longest + kPackSlack;
    uint8_t* bounce = mcc_open_mpi.memory(&job->plan, room);
    if (NULL == bounce)
        return FI_ENOMEM;  // the others' operation ends with the provider's error for a missing member
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool am_root = job->plan.self == job->plan.whole.root;
    const int error =
        prepare(&convertor, am_root, &job->plan.to) ? run_segments(job, &convertor, bounce, room) : FI_EOTHER;
    OBJ_DESTRUCT(&convertor);
    return error;
}
