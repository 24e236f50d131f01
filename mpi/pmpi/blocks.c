// The operations that move a block of each member, or one for each member.
//
// The packed size of one block is the same on all members, whatever their datatypes; it is all that decides.
// n blocks that follow each other are one layout of n times as many elements, so a member's blocks are packed
// and unpacked in one go.
//
// MPI_Allgatherv: blocks of unequal sizes travel as blocks of the largest size, as long as that at most
// doubles what is sent.

#include <string.h>

#include "pmpi.h"

// What a whole operation may have, on any member.
static bool fits(int64_t part, int members) {
    return part > 0 && pmpi_in_range((uint64_t)part * (uint64_t)members);
}

static PmpiLayout times(PmpiLayout block, int members) {
    block.count *= members;
    return block;
}

// One operation on packed bytes; what comes in is put where it belongs.
static bool run(PmpiGroup* g, PmpiOperation operation, int root, const uint8_t* input, uint8_t* room,
                size_t part, const PmpiLayout* out, size_t out_bytes, int* rc) {
    const struct fi_mcastcoll_request request = {
        .input = input, .buffer = room, .count = part, .datatype = FI_UINT8, .root = (uint32_t)root};
    if (!pmpi_run(g, operation, &request, rc)) return false;
    if (MPI_SUCCESS == *rc && NULL != out && !pmpi_deliver(g, out, room, out_bytes))
        return pmpi_fail(g, operation, FI_EOTHER, rc);
    pmpi_trim(g);
    return true;
}

bool pmpi_allgather(PmpiLayout in, PmpiLayout out, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiAllgather);
    if (NULL == g) return false;
    const int64_t part = pmpi_bytes(out.count, out.type);
    if (!fits(part, g->size)) return pmpi_leave(kPmpiAllgather);
    const size_t own = (size_t)part * (size_t)g->rank, all = (size_t)part * (size_t)g->size;
    const PmpiLayout result = times(out, g->size);
    uint8_t* room = pmpi_room(g, &result, all);
    const uint8_t* input = NULL;
    if (NULL != room && MPI_IN_PLACE == in.buffer) {
        const PmpiLayout mine = pmpi_advance(out, g->rank * out.count, out.count);
        const bool good = room != g->bounce[1] || pmpi_pack(&mine, room + own, (size_t)part);
        input = good ? room + own : NULL;
    } else {
        input = pmpi_input(g, &in, (size_t)part);
    }
    if (NULL == room || NULL == input) return pmpi_fail(g, kPmpiAllgather, FI_ENOMEM, rc);
    return run(g, kPmpiAllgather, 0, input, room, (size_t)part, &result, all, rc);
}

bool pmpi_allgatherv(PmpiLayout in, void* buffer, PmpiList counts, PmpiList places, MPI_Datatype type,
                     MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiAllgatherv);
    if (NULL == g) return false;
    const int64_t width = NULL == counts.at || NULL == places.at ? -1 : pmpi_bytes(1, type);
    if (width <= 0) return pmpi_leave(kPmpiAllgatherv);
    MPI_Count most = 0, sum = 0;
    bool in_order = true;  // and without gaps, when all blocks are alike
    for (int i = 0; i < g->size; ++i) {
        const MPI_Count count = pmpi_item(counts, i);
        if (count < 0 || count > INT64_MAX / 4 / width / g->size) return pmpi_leave(kPmpiAllgatherv);
        most = count > most ? count : most;
        sum += count;
    }
    for (int i = 0; i < g->size; ++i)
        in_order = in_order && pmpi_item(counts, i) == most && pmpi_item(places, i) == i * most;
    const size_t part = (size_t)(most * width), all = part * (size_t)g->size;
    if (!fits((int64_t)part, g->size) || most * g->size > 2 * sum) return pmpi_leave(kPmpiAllgatherv);
    const PmpiLayout base = {.buffer = buffer, .count = 1, .type = type};
    const PmpiLayout mine = pmpi_advance(base, pmpi_item(places, g->rank), pmpi_item(counts, g->rank));
    const PmpiLayout from = MPI_IN_PLACE == in.buffer ? mine : in;
    const size_t own = (size_t)(pmpi_item(counts, g->rank) * width);
    const PmpiLayout result = {.buffer = buffer, .count = most * g->size, .type = type};
    uint8_t* room = in_order ? pmpi_room(g, &result, all) : pmpi_bounce(g, 1, all);
    const bool bounced = room == g->bounce[1];
    if (NULL == room) return pmpi_fail(g, kPmpiAllgatherv, FI_ENOMEM, rc);
    const uint8_t* input = room + part * (size_t)g->rank;
    bool good = true;
    if (own == part && MPI_IN_PLACE != in.buffer)
        good = NULL != (input = pmpi_input(g, &in, part));
    else if (bounced)
        good = 0 == own || pmpi_pack(&from, room + part * (size_t)g->rank, own);
    if (bounced && own < part) memset(room + part * (size_t)g->rank + own, 0, part - own);
    if (!good) return pmpi_fail(g, kPmpiAllgatherv, FI_ENOMEM, rc);
    if (!run(g, kPmpiAllgatherv, 0, input, room, part, NULL, 0, rc)) return false;
    for (int i = 0; i < g->size && bounced && MPI_SUCCESS == *rc; ++i) {
        const PmpiLayout block = pmpi_advance(base, pmpi_item(places, i), pmpi_item(counts, i));
        const size_t bytes = (size_t)(block.count * width);
        if (0 != bytes && !pmpi_unpack(&block, room + part * (size_t)i, bytes))
            return pmpi_fail(g, kPmpiAllgatherv, FI_EOTHER, rc);
    }
    return true;
}

bool pmpi_gather(PmpiLayout in, PmpiLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiGather);
    if (NULL == g) return false;
    const bool am_root = g->rank == root;
    const int64_t part = am_root ? pmpi_bytes(out.count, out.type) : pmpi_bytes(in.count, in.type);
    if (root < 0 || root >= g->size || !fits(part, g->size)) return pmpi_leave(kPmpiGather);
    const size_t own = (size_t)part * (size_t)root, all = (size_t)part * (size_t)g->size;
    const PmpiLayout result = times(out, g->size);
    uint8_t* room = am_root ? pmpi_room(g, &result, all) : NULL;
    const uint8_t* input = NULL;
    if (am_root && NULL == room) return pmpi_fail(g, kPmpiGather, FI_ENOMEM, rc);
    if (am_root && MPI_IN_PLACE == in.buffer) {
        const PmpiLayout mine = pmpi_advance(out, g->rank * out.count, out.count);
        const bool good = room != g->bounce[1] || pmpi_pack(&mine, room + own, (size_t)part);
        input = good ? room + own : NULL;
    } else {
        input = pmpi_input(g, &in, (size_t)part);
    }
    if (NULL == input) return pmpi_fail(g, kPmpiGather, FI_ENOMEM, rc);
    return run(g, kPmpiGather, root, input, room, (size_t)part, am_root ? &result : NULL, all, rc);
}

bool pmpi_scatter(PmpiLayout in, PmpiLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiScatter);
    if (NULL == g) return false;
    const bool am_root = g->rank == root;
    const int64_t part = am_root ? pmpi_bytes(in.count, in.type) : pmpi_bytes(out.count, out.type);
    if (root < 0 || root >= g->size || !fits(part, g->size)) return pmpi_leave(kPmpiScatter);
    const bool in_place = am_root && MPI_IN_PLACE == out.buffer;
    const PmpiLayout source = times(in, g->size);
    const uint8_t* input = am_root ? pmpi_input(g, &source, (size_t)part * (size_t)g->size) : NULL;
    // In place the root's block stays where it is; the provider's copy of it goes nowhere.
    uint8_t* room = in_place ? pmpi_bounce(g, 1, (size_t)part) : pmpi_room(g, &out, (size_t)part);
    if (NULL == room || (am_root && NULL == input)) return pmpi_fail(g, kPmpiScatter, FI_ENOMEM, rc);
    return run(g, kPmpiScatter, root, input, room, (size_t)part, in_place ? NULL : &out, (size_t)part, rc);
}

bool pmpi_alltoall(PmpiLayout in, PmpiLayout out, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiAlltoall);
    if (NULL == g) return false;
    const int64_t part = pmpi_bytes(out.count, out.type);
    if (!fits(part, g->size)) return pmpi_leave(kPmpiAlltoall);
    const size_t all = (size_t)part * (size_t)g->size;
    const PmpiLayout result = times(out, g->size), source = times(in, g->size);
    uint8_t* room = pmpi_room(g, &result, all);
    const uint8_t* input = NULL;
    if (MPI_IN_PLACE == in.buffer) {
        uint8_t* copy = pmpi_bounce(g, 0, all);
        input = NULL != copy && pmpi_pack(&result, copy, all) ? copy : NULL;
    } else {
        input = pmpi_input(g, &source, all);
    }
    if (NULL == room || NULL == input) return pmpi_fail(g, kPmpiAlltoall, FI_ENOMEM, rc);
    return run(g, kPmpiAlltoall, 0, input, room, (size_t)part, &result, all, rc);
}
