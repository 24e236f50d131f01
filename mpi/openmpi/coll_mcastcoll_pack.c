// Packs derived datatypes and buffers in an accelerator's memory into a bounce buffer with Open MPI's
// convertor. The convertor recognises accelerator memory by itself and lets the accelerator copy the bytes.

#include "coll_mcastcoll.h"

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

bool mcc_prepare_convertor(opal_convertor_t* convertor, bool packs, const MccLayout* layout) {
    const int rc = (packs ? opal_convertor_copy_and_prepare_for_send
                          : opal_convertor_copy_and_prepare_for_recv)(
        ompi_mpi_local_convertor, &layout->type->super, (size_t)layout->count, layout->base, 0, convertor);
    return OPAL_SUCCESS == rc;
}

bool mcc_convert(opal_convertor_t* convertor, bool packs, uint8_t* memory, size_t room, size_t* filled,
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
    const bool good = mcc_prepare_convertor(&convertor, packs, layout) &&
                      mcc_convert(&convertor, packs, memory, bytes, &filled, bytes);
    OBJ_DESTRUCT(&convertor);
    return good;
}

bool mcc_pack(const MccLayout* from, uint8_t* to, size_t bytes) {
    return convert_all(from, true, to, bytes);
}

bool mcc_unpack(const MccLayout* to, const uint8_t* from, size_t bytes) {
    return convert_all(to, false, (uint8_t*)(uintptr_t)from, bytes);
}

// Managed memory, which the driver moves between device and host, counts as device memory: while its pages
// are on the device, other processes and the kernel may fail to access the pages.
bool mcc_is_device(const void* base) {
    return mcc_component.has_accelerator && mcc_is_accelerators(base);
}

const uint8_t* mcc_contiguous(const MccLayout* layout) {
    ptrdiff_t gap = 0;
    if (layout->count > INT32_MAX ||
        !ompi_datatype_is_contiguous_memory_layout(layout->type, (int32_t)layout->count))
        return NULL;
    (void)opal_datatype_span(&layout->type->super, (size_t)layout->count, &gap);
    const uint8_t* first = (const uint8_t*)layout->base + gap;
    return mcc_is_device(first) ? NULL : first;
}
