// Message layouts and packing with MPI_Pack. The packed form is used as plain bytes. The MPI standard does
// not guarantee this, so pmpi_packs_plainly() checks it.

#include <limits.h>

#include "pmpi.h"

enum { kDepth = 8 };

typedef struct {
    MPI_Count integers, addresses, large_counts, types;
    int combiner;
} Envelope;

#if MPI_VERSION >= 4
#pragma weak PMPI_Type_get_envelope_c  // missing in MPI 3 libraries
#endif

static bool look_at(MPI_Datatype type, Envelope* e) {
    int integers = 0, addresses = 0, types = 0;
#if MPI_VERSION >= 4
    // The ordinary call fails for a datatype made with large counts.
    if (NULL != PMPI_Type_get_envelope_c)
        return MPI_SUCCESS == PMPI_Type_get_envelope_c(type, &e->integers, &e->addresses, &e->large_counts,
                                                       &e->types, &e->combiner);
#endif
    if (MPI_SUCCESS != PMPI_Type_get_envelope(type, &integers, &addresses, &types, &e->combiner))
        return false;
    e->integers = integers;
    e->addresses = addresses;
    e->large_counts = 0;
    e->types = types;
    return true;
}

// Returns whether the elements follow each other without gaps and in the order of their addresses. Size and
// extent are not enough: a datatype may order its parts differently.
static bool is_plain(MPI_Datatype type, int depth) {
    Envelope e;
    if (!look_at(type, &e)) return false;
    if (MPI_COMBINER_NAMED == e.combiner) {
        MPI_Count width;
        MPI_Aint lower, extent;
        PMPI_Type_size_x(type, &width);
        PMPI_Type_get_extent(type, &lower, &extent);
        return 0 == lower && extent == (MPI_Aint)width;
    }
    if ((MPI_COMBINER_DUP != e.combiner && MPI_COMBINER_CONTIGUOUS != e.combiner) || 0 == depth) return false;
    int integer[1];
    MPI_Aint address[1];
    MPI_Datatype inner;
    if (e.integers > 1 || e.addresses > 1 || 0 != e.large_counts || 1 != e.types ||
        MPI_SUCCESS !=
            PMPI_Type_get_contents(type, (int)e.integers, (int)e.addresses, 1, integer, address, &inner))
        return false;
    const bool plain = is_plain(inner, depth - 1);
    if (look_at(inner, &e) && MPI_COMBINER_NAMED != e.combiner) PMPI_Type_free(&inner);
    return plain;
}

size_t mcc_width(MPI_Datatype type) {
    MPI_Count width = 0;
    const bool known = MPI_DATATYPE_NULL != type && MPI_SUCCESS == PMPI_Type_size_x(type, &width);
    return known && width > 0 ? (size_t)width : 0;
}

ptrdiff_t mcc_extent(MPI_Datatype type) {
    MPI_Aint lower, extent;
    PMPI_Type_get_extent(type, &lower, &extent);
    return (ptrdiff_t)extent;
}

// MPI has no function that reports whether a buffer is on a device, but MPI_Pack of a GPU-aware MPI
// recognises such buffers.
bool mcc_is_device(const void* base) {
    (void)base;
    return pmpi.stages;
}

const uint8_t* mcc_contiguous(const MccLayout* layout) {
    return !pmpi.stages && is_plain(layout->type, kDepth) ? layout->base : NULL;
}

// MPI_BOTTOM is NULL in MPICH, whose MPI_Pack and MPI_Unpack refuse NULL. So the datatype's absolute
// addresses become displacements from a variable.
static MccLayout move_from_bottom(const MccLayout* layout) {
    static const char anchor;
    const MPI_Aint place = -(MPI_Aint)(uintptr_t)&anchor;
    const int count = (int)layout->count;
    MccLayout moved = {.base = &anchor, .count = 1, .type = MPI_DATATYPE_NULL};
    if (MPI_SUCCESS == PMPI_Type_create_hindexed(1, &count, &place, layout->type, &moved.type))
        PMPI_Type_commit(&moved.type);
    return moved;
}

static bool convert(const MccLayout* layout, uint8_t* packed, int bytes, bool packs) {
    const bool at_bottom = MPI_BOTTOM == layout->base && bytes > 0;
    MccLayout l = at_bottom ? move_from_bottom(layout) : *layout;
    void* const base = (void*)(uintptr_t)l.base;
    int at = 0;
    const int code = packs ? PMPI_Pack(base, (int)l.count, l.type, packed, bytes, &at, MPI_COMM_SELF)
                           : PMPI_Unpack(packed, bytes, &at, base, (int)l.count, l.type, MPI_COMM_SELF);
    if (at_bottom && MPI_DATATYPE_NULL != l.type) PMPI_Type_free(&l.type);
    return MPI_SUCCESS == code && at == bytes;
}

bool mcc_pack(const MccLayout* from, uint8_t* to, size_t bytes) {
    return from->count <= INT_MAX && bytes <= INT_MAX && convert(from, to, (int)bytes, true);
}

bool mcc_unpack(const MccLayout* to, const uint8_t* from, size_t bytes) {
    return to->count <= INT_MAX && bytes <= INT_MAX &&
           convert(to, (uint8_t*)(uintptr_t)from, (int)bytes, false);
}

bool pmpi_packs_plainly(void) {
    const int32_t laid[4] = {0x01020304, -1, 0x05060708, -1}, expected[2] = {0x01020304, 0x05060708};
    int32_t packed[2] = {0, 0};
    MPI_Datatype every_other;
    PMPI_Type_create_resized(MPI_INT32_T, 0, 2 * sizeof(int32_t), &every_other);
    PMPI_Type_commit(&every_other);
    const MccLayout layout = {.base = laid, .count = 2, .type = every_other};
    int room = 0;
    const bool good = MPI_SUCCESS == PMPI_Pack_size(2, every_other, MPI_COMM_SELF, &room) &&
                      room == (int)sizeof(packed) && mcc_pack(&layout, (uint8_t*)packed, sizeof(packed)) &&
                      0 == memcmp(packed, expected, sizeof(packed));
    PMPI_Type_free(&every_other);
    return good;
}

#ifdef MPIX_GPU_SUPPORT_CUDA
#pragma weak PMPIX_GPU_query_support  // in MPICH since 4.0; missing in some libraries with MPICH's ABI
#endif

// MPICH has a function that reports GPU support. In the MPI of Cray and Intel and in MVAPICH2, an environment
// variable enables GPU support.
bool pmpi_takes_devices(void) {
    static const char* const kSwitches[] = {"MPICH_GPU_SUPPORT_ENABLED", "I_MPI_OFFLOAD", "MV2_USE_CUDA"};
    for (size_t i = 0; i < sizeof(kSwitches) / sizeof(kSwitches[0]); ++i) {
        const char* value = getenv(kSwitches[i]);
        if (NULL != value && '\0' != *value && 0 != strcmp(value, "0")) return true;
    }
#ifdef MPIX_GPU_SUPPORT_CUDA
    static const int kKinds[] = {MPIX_GPU_SUPPORT_CUDA, MPIX_GPU_SUPPORT_ZE, MPIX_GPU_SUPPORT_HIP};
    for (size_t i = 0; NULL != PMPIX_GPU_query_support && i < sizeof(kKinds) / sizeof(kKinds[0]); ++i) {
        int supported = 0;
        if (MPI_SUCCESS == PMPIX_GPU_query_support(kKinds[i], &supported) && supported) return true;
    }
#endif
    return false;
}
