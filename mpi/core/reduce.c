// The reductions. Elements, operator and counts decide, which MPI wants to be the same on all members.

#include <rdma/fi_errno.h>

#include "core/plan.h"

void mcc_lay_reduction(MccPlan* p, enum fi_collective_op collective, const void* in, void* out, int root) {
    const bool gets = FI_REDUCE != collective || p->self == (size_t)root;
    p->whole.collective = collective;
    p->whole.input = mcc_is_in_place(in) ? out : in;
    p->whole.buffer = gets ? out : NULL;
    p->whole.root = (uint32_t)root;
}

bool mcc_deal_counts(const MccPlan* p, MccList counts, MccDeal* deal) {
    const int64_t members = (int64_t)p->members;
    *deal = (MccDeal){.even = true, .own = mcc_item(counts, p->self)};
    for (size_t i = 0; i < p->members; ++i) {
        const int64_t count = mcc_item(counts, i);
        if (count < 0 || count > INT64_MAX / 2 - deal->total) return false;
        if (i == p->self) deal->before = deal->total;
        deal->total += count;
    }
    for (int64_t i = 0; i < members; ++i) {
        const int64_t slice = deal->total / members + (i < deal->total % members);
        deal->even = deal->even && mcc_item(counts, (size_t)i) == slice;
    }
    return true;
}

bool mcc_deal_alike(const MccPlan* p, int64_t count, MccDeal* deal) {
    const int64_t members = (int64_t)p->members;
    if (count < 0 || count > INT64_MAX / 2 / members) return false;
    *deal =
        (MccDeal){.total = count * members, .before = count * (int64_t)p->self, .own = count, .even = true};
    return true;
}

// In place the vector lies where its slice is to go, which the provider does not do; and a slice may be empty
// and have no address.
int mcc_lay_deal(MccPlan* p, const MccDeal* deal, const void* in, void* out, size_t width, bool whole) {
    mcc_lay_reduction(p, whole ? FI_ALLREDUCE : FI_REDUCE_SCATTER, in, out, 0);
    if (!whole && !mcc_is_in_place(in) && 0 != deal->own) return 0;
    uint8_t* memory = p->face->memory(p, (size_t)(whole ? deal->total : deal->own + 1) * width);
    if (NULL == memory) return FI_ENOMEM;
    p->whole.buffer = memory;
    if (0 == deal->own) return 0;
    p->afterwards = kMccCopy;
    p->from = memory + (whole ? (size_t)deal->before * width : 0);
    p->bytes = (size_t)deal->own * width;
    p->to.base = out;
    return 0;
}
