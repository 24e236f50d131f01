// The provider operations of a collective call, and the call's completion, for blocking and non-blocking
// calls.

#include "coll_mcastcoll.h"

// Between the hosts of one site, reductions are divided into vectors of at most 64 KiB: such a vector fits
// into one message, goes up the tree at once, and the next one follows immediately. Each part costs a round
// trip, so vectors between sites are divided only at mcc_component.longest.
size_t mcc_longest_part(const MccCall* call) {
    enum { kGathered = 65536 };
    const size_t longest = mcc_component.longest;
    const bool reduces =
        FI_REDUCE == call->prepared.whole.collective || FI_ALLREDUCE == call->prepared.whole.collective;
    const bool in_site = call->module->hosts > 1 && 1 == call->module->sites;
    return reduces && in_site && longest > kGathered ? kGathered : longest;
}

struct fi_mcastcoll_request mcc_part(const MccCall* call, size_t offset) {
    struct fi_mcastcoll_request part = call->prepared.whole;
    if (!call->divisible) return part;
    const size_t segment = call->longest / call->prepared.width, left = part.count - offset;
    part.count = left < segment ? left : segment;
    // A broadcast has no input, and only the root of a reduce has a result buffer.
    if (NULL != part.input) part.input = (const uint8_t*)part.input + offset * call->prepared.width;
    if (NULL != part.buffer) part.buffer = (uint8_t*)part.buffer + offset * call->prepared.width;
    return part;
}

ssize_t mcc_post(MccGroup* g, const struct fi_mcastcoll_request* r, void* context) {
    struct fid_ep* ep = mcc_component.fabric.ep;
    const fi_addr_t to = g->join.address, root = r->root;
    const void* in = r->input;
    void* out = r->buffer;
    const size_t n = r->count;
    const enum fi_datatype type = r->datatype;
    switch (r->collective) {
        case FI_BARRIER:
            return fi_barrier(ep, to, context);
        case FI_BROADCAST:
            return fi_broadcast(ep, out, n, NULL, to, root, type, 0, context);
        case FI_ALLREDUCE:
            return fi_allreduce(ep, in, n, NULL, out, NULL, to, type, r->op, 0, context);
        case FI_REDUCE:
            return fi_reduce(ep, in, n, NULL, out, NULL, to, root, type, r->op, 0, context);
        case FI_REDUCE_SCATTER:
            return fi_reduce_scatter(ep, in, n, NULL, out, NULL, to, type, r->op, 0, context);
        case FI_ALLGATHER:
            return fi_allgather(ep, in, n, NULL, out, NULL, to, type, 0, context);
        case FI_ALLTOALL:
            return fi_alltoall(ep, in, n, NULL, out, NULL, to, type, 0, context);
        case FI_GATHER:
            return fi_gather(ep, in, n, NULL, out, NULL, to, root, type, 0, context);
        case FI_SCATTER:
            return fi_scatter(ep, in, n, NULL, out, NULL, to, root, type, 0, context);
        default:
            return -FI_ENOSYS;
    }
}

bool mcc_unpacks_derived(const MccCall* call) {
    const MccAfterwards what = call->prepared.afterwards;
    return (kMccUnpack == what || kMccUnpackBlocks == what) &&
           !ompi_datatype_is_predefined(call->prepared.to.type);
}

bool mcc_finish_call(MccCall* call, bool good) {
    good = good && mcc_deliver(&call->prepared);
    if (kMccBlocking == call->form) {
        mcc_bounce_trim(&call->module->bounce, kMccKeptBounce);
        return good;
    }
    if (mcc_unpacks_derived(call)) OBJ_RELEASE(call->prepared.to.type);
    mcc_bounce_trim(&call->memory, 0);
    free(call->vectors);
    call->vectors = NULL;
    return good;
}

int mcc_fail(MccGroup* g, const MccCall* call, int error) {
    // Adds the rank that was lost and how the loss was detected, also to calls without a completion's text.
    if (NULL != g->join.mc && NULL != g->join.get_failure)
        (void)g->join.get_failure(g->join.mc, g->operation.text, sizeof(g->operation.text));
    const bool more = '\0' != g->operation.text[0];
    char size[48] = "", root[32] = "";
    if (kMccBarrier != call->collective) snprintf(size, sizeof(size), " of %zu bytes", call->bytes);
    if (FI_BROADCAST == call->prepared.whole.collective || FI_SCATTER == call->prepared.whole.collective)
        snprintf(root, sizeof(root), " from rank %u", call->prepared.whole.root);
    if (FI_REDUCE == call->prepared.whole.collective || FI_GATHER == call->prepared.whole.collective)
        snprintf(root, sizeof(root), " to rank %u", call->prepared.whole.root);
    g->failed = true;
    opal_output(0, "coll/mcastcoll: %s%s%s%s failed on communicator %s, rank %d of %d: %s%s%s%s",
                kMccNonblocking == call->form ? "i" : "", mcc_collective_names[call->collective], size, root,
                g->name, g->join.rank, g->join.size, fi_strerror(error), more ? " (" : "",
                more ? g->operation.text : "", more ? ")" : "");
    return mcc_error_class(error);
}
