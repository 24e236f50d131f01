// The reductions. Elements, operator and counts decide, which MPI wants to be the same on all members.
//
// libfabric deals the result of a reduce_scatter out itself (as many elements for everybody, one more for
// each of the first few); MPI's is served where its counts say the same.

#include <string.h>

#include "core/types.h"
#include "pmpi.h"

static size_t width_of(MPI_Datatype type) {
    const int64_t bytes = pmpi_bytes(1, type);
    return bytes > 0 ? (size_t)bytes : 0;
}

// Fills in what describes the elements. False: the call is left.
static bool begin(PmpiOperation operation, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  struct fi_mcastcoll_request* request, size_t* width) {
    if (count < 0 || !mcc_reduction(type, op, width_of, &request->datatype, &request->op, width))
        return false;
    const uint16_t* pairs = pmpi.provider.reductions[pmpi_collective_of(operation)];
    if (0 == (pairs[request->datatype] >> request->op & 1)) return false;
    request->count = (size_t)count;
    return (uint64_t)count <= UINT64_MAX / *width && pmpi_in_range((uint64_t)count * *width);
}

bool pmpi_allreduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                    int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiAllreduce);
    if (NULL == g) return false;
    struct fi_mcastcoll_request request = {.input = MPI_IN_PLACE == in ? out : in, .buffer = out};
    size_t width = 0;
    if (!begin(kPmpiAllreduce, count, type, op, &request, &width)) return pmpi_leave(kPmpiAllreduce);
    return pmpi_run(g, kPmpiAllreduce, &request, NULL, NULL, rc);
}

bool pmpi_reduce(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                 MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiReduce);
    if (NULL == g) return false;
    const bool am_root = g->rank == root;
    struct fi_mcastcoll_request request = {.input = am_root && MPI_IN_PLACE == in ? out : in,
                                           .buffer = am_root ? out : NULL,
                                           .root = (uint32_t)root};
    size_t width = 0;
    if (root < 0 || root >= g->size || !begin(kPmpiReduce, count, type, op, &request, &width))
        return pmpi_leave(kPmpiReduce);
    return pmpi_run(g, kPmpiReduce, &request, NULL, NULL, rc);
}

typedef struct {
    void* to;
    const void* from;
    size_t bytes;
} Slice;

static bool deliver_slice(const PmpiGroup* g, const void* arrival) {
    (void)g;
    const Slice* slice = arrival;
    memcpy(slice->to, slice->from, slice->bytes);
    return true;
}

// `mine`: elements of this member's slice. In place the vector lies where its slice is to go, which the
// provider does not do; and a slice may be empty and have no address.
static bool scatter(PmpiGroup* g, PmpiOperation operation, const void* in, void* out, size_t mine,
                    size_t width, struct fi_mcastcoll_request* request, int* rc) {
    const bool in_place = MPI_IN_PLACE == in;
    request->input = in_place ? out : in;
    request->buffer = in_place || 0 == mine ? pmpi_bounce(g, 1, (mine + 1) * width) : out;
    if (NULL == request->buffer) return pmpi_fail(g, operation, FI_ENOMEM, rc);
    const Slice slice = {.to = out, .from = request->buffer, .bytes = mine * width};
    return pmpi_run(g, operation, request, in_place ? deliver_slice : NULL, &slice, rc);
}

bool pmpi_reduce_scatter(const void* in, void* out, PmpiList counts, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiReduceScatter);
    if (NULL == g) return false;
    if (NULL == counts.at) return pmpi_leave(kPmpiReduceScatter);
    struct fi_mcastcoll_request request = {0};
    size_t width = 0;
    MPI_Count sum = 0;
    for (int i = 0; i < g->size; ++i) {
        const MPI_Count count = pmpi_item(counts, i);
        if (count < 0 || count > INT64_MAX / 2 - sum) return pmpi_leave(kPmpiReduceScatter);
        sum += count;
    }
    for (int i = 0; i < g->size; ++i)
        if (pmpi_item(counts, i) != sum / g->size + (i < sum % g->size))
            return pmpi_leave(kPmpiReduceScatter);
    if (!begin(kPmpiReduceScatter, sum, type, op, &request, &width)) return pmpi_leave(kPmpiReduceScatter);
    return scatter(g, kPmpiReduceScatter, in, out, (size_t)pmpi_item(counts, g->rank), width, &request, rc);
}

bool pmpi_reduce_scatter_block(const void* in, void* out, MPI_Count count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiReduceScatterBlock);
    if (NULL == g) return false;
    struct fi_mcastcoll_request request = {0};
    size_t width = 0;
    if (count < 0 || count > INT64_MAX / 2 / g->size ||
        !begin(kPmpiReduceScatterBlock, count * g->size, type, op, &request, &width))
        return pmpi_leave(kPmpiReduceScatterBlock);
    return scatter(g, kPmpiReduceScatterBlock, in, out, (size_t)count, width, &request, rc);
}
