#include "core/plan.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

int mcc_lay_bcast(MccPlan* p, const MccLayout* layout, size_t bytes, int root) {
    const MccFace* face = p->face;
    p->whole.collective = FI_BROADCAST;
    p->whole.count = bytes;
    p->whole.root = (uint32_t)root;
    p->whole.buffer = (uint8_t*)(uintptr_t)face->contiguous(layout);
    if (NULL != p->whole.buffer) return 0;
    uint8_t* memory = face->memory(p, bytes);
    if (NULL == memory) return FI_ENOMEM;
    p->whole.buffer = memory;
    if (p->self == (size_t)root) return face->pack(layout, memory, bytes) ? 0 : FI_EOTHER;
    p->afterwards = kMccUnpack;
    p->from = memory;
    p->bytes = bytes;
    p->to = *layout;
    return 0;
}

static bool unpack_blocks(const MccPlan* p) {
    const size_t width = p->face->width(p->to.type);
    const ptrdiff_t extent = p->face->extent(p->to.type);
    for (size_t i = 0; i < p->members; ++i) {
        const MccLayout block = {.base = (const uint8_t*)p->to.base + mcc_item(p->places, i) * extent,
                                 .count = mcc_item(p->counts, i),
                                 .type = p->to.type};
        const size_t bytes = (size_t)block.count * width;
        if (0 != bytes && !p->face->unpack(&block, p->from + i * p->block, bytes)) return false;
    }
    return true;
}

bool mcc_deliver(const MccPlan* p) {
    switch (p->afterwards) {
        case kMccNothing:
            return true;
        case kMccUnpack:
            return p->face->unpack(&p->to, p->from, p->bytes);
        case kMccUnpackBlocks:
            return unpack_blocks(p);
        case kMccCopy:
            memcpy((void*)(uintptr_t)p->to.base, p->from, p->bytes);
            return true;
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
