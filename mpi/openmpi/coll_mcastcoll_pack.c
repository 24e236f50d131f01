// Derived datatypes: their bytes go through a bounce buffer, packed by Open MPI's convertor.

#include <stdlib.h>

#include "coll_mcastcoll_job.h"
#include "ompi/constants.h"

enum { kKeptBounce = 1 << 20 };

static uint8_t* take_bounce(MccModule* m, size_t bytes) {
    if (m->bounce_bytes < bytes) {
        free(m->bounce);
        m->bounce = malloc(bytes);
        m->bounce_bytes = NULL != m->bounce ? bytes : 0;
    }
    return m->bounce;
}

// Once for each job. The module's is kept for the next call unless it is large.
uint8_t* mcc_job_memory(MccJob* job, size_t bytes) {
    if (kMccBlocking == job->form) return take_bounce(job->module, bytes);
    job->memory = malloc(0 == bytes ? 1 : bytes);
    return job->memory;
}

void mcc_trim_bounce(MccModule* m) {
    if (m->bounce_bytes <= kKeptBounce) return;
    free(m->bounce);
    m->bounce = NULL;
    m->bounce_bytes = 0;
}

bool mcc_prepare(opal_convertor_t* convertor, bool to_send, const void* buffer, size_t count,
                 ompi_datatype_t* datatype) {
    const int rc = to_send ? opal_convertor_copy_and_prepare_for_send(
                                 ompi_mpi_local_convertor, &datatype->super, count, buffer, 0, convertor)
                           : opal_convertor_copy_and_prepare_for_recv(
                                 ompi_mpi_local_convertor, &datatype->super, count, buffer, 0, convertor);
    return OPAL_SUCCESS == rc;
}

// Adds packed bytes to the bounce buffer until it is full or the message ends. False if the convertor fails.
bool mcc_pack_more(opal_convertor_t* convertor, uint8_t* bounce, size_t room, size_t* filled, size_t wanted) {
    while (*filled < wanted) {
        struct iovec iov = {.iov_base = bounce + *filled, .iov_len = room - *filled};
        uint32_t iov_count = 1;
        size_t packed = iov.iov_len;
        if (opal_convertor_pack(convertor, &iov, &iov_count, &packed) < 0 || 0 == packed) return false;
        *filled += packed;
    }
    return true;
}

bool mcc_unpack_part(opal_convertor_t* convertor, const uint8_t* bounce, size_t bytes) {
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

uint8_t* mcc_contiguous(const void* buffer, size_t count, ompi_datatype_t* datatype) {
    ptrdiff_t gap = 0;
    if (count > INT32_MAX || !ompi_datatype_is_contiguous_memory_layout(datatype, (int32_t)count))
        return NULL;
    (void)opal_datatype_span(&datatype->super, count, &gap);
    return (uint8_t*)(uintptr_t)buffer + gap;
}

// The first elements from the layout's beginning on.
bool mcc_pack(const MccLayout* from, size_t elements, uint8_t* to, size_t bytes) {
    size_t filled = 0;
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool good = mcc_prepare(&convertor, true, from->base, elements, from->type) &&
                      mcc_pack_more(&convertor, to, bytes, &filled, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

static bool unpack(void* to, size_t count, ompi_datatype_t* type, const uint8_t* from, size_t bytes) {
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    const bool good =
        mcc_prepare(&convertor, false, to, count, type) && mcc_unpack_part(&convertor, from, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

uint8_t* mcc_place_of(const MccLayout* layout, size_t member) {
    ptrdiff_t lower, extent;
    ompi_datatype_get_extent(layout->type, &lower, &extent);
    const ptrdiff_t place =
        NULL != layout->places ? layout->places[member] : (ptrdiff_t)member * layout->count;
    return layout->base + place * extent;
}

static size_t elements_of(const MccLayout* layout, size_t member) {
    return (size_t)(NULL != layout->counts ? layout->counts[member] : layout->count);
}

size_t mcc_bytes_of(const MccLayout* layout, size_t member) {
    size_t size = 0;
    ompi_datatype_type_size(layout->type, &size);
    return size * elements_of(layout, member);
}

static bool unpack_blocks(const MccJob* job) {
    for (size_t member = 0; member < job->members; ++member) {
        if (member == job->self && job->skip_self) continue;
        const size_t bytes = mcc_bytes_of(&job->to, member);
        if (0 != bytes && !unpack(mcc_place_of(&job->to, member), elements_of(&job->to, member), job->to.type,
                                  job->from + member * job->block, bytes))
            return false;
    }
    return true;
}

bool mcc_finish_job(MccJob* job, bool good) {
    if (good && kMccUnpackOwn == job->afterwards)
        good = unpack(job->to.base, (size_t)job->to.count, job->to.type, job->from, job->bytes);
    if (good && kMccUnpackBlocks == job->afterwards) good = unpack_blocks(job);
    if (kMccBlocking == job->form) {
        mcc_trim_bounce(job->module);
        return good;
    }
    if (NULL != job->to.type && !ompi_datatype_is_predefined(job->to.type)) OBJ_RELEASE(job->to.type);
    free(job->memory);
    free(job->vectors);
    job->memory = NULL;
    job->vectors = NULL;
    return good;
}
