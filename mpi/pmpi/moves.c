// MPI_Bcast and MPI_Barrier.

#include "pmpi.h"

bool pmpi_bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiBcast);
    if (NULL == g) return false;
    const int64_t bytes = pmpi_bytes(count, type);
    if (bytes < 0 || root < 0 || root >= g->size || !pmpi_in_range((uint64_t)bytes))
        return pmpi_leave(kPmpiBcast);
    const PmpiLayout layout = {.buffer = buffer, .count = count, .type = type};
    const bool am_root = g->rank == root;
    uint8_t* room = pmpi_room(g, &layout, (size_t)bytes);
    const bool bounced = room == g->bounce[1];
    if (NULL == room || (bounced && am_root && !pmpi_pack(&layout, room, (size_t)bytes)))
        return pmpi_fail(g, kPmpiBcast, FI_ENOMEM, rc);
    const struct fi_mcastcoll_request request = {
        .buffer = room, .count = (size_t)bytes, .datatype = FI_UINT8, .root = (uint32_t)root};
    const PmpiArrival arrival = {.to = &layout, .room = room, .bytes = (size_t)bytes};
    return pmpi_run(g, kPmpiBcast, &request, am_root ? NULL : pmpi_deliver, &arrival, rc);
}

bool pmpi_barrier(MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiBarrier);
    const struct fi_mcastcoll_request request = {.datatype = FI_VOID};
    return NULL != g && pmpi_run(g, kPmpiBarrier, &request, NULL, NULL, rc);
}
