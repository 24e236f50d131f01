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

// Of what this member has to say, only: what MPI does not look at may be anything.
static PmpiLayout times(PmpiLayout block, int members) {
    block.count *= members;
    return block;
}

static struct fi_mcastcoll_request request_of(const uint8_t* input, uint8_t* room, size_t part, int root) {
    return (struct fi_mcastcoll_request){
        .input = input, .buffer = room, .count = part, .datatype = FI_UINT8, .root = (uint32_t)root};
}

// One operation on packed bytes; what comes in is put where it belongs.
static bool run(PmpiGroup* g, PmpiOperation operation, int root, const uint8_t* input, uint8_t* room,
                size_t part, const PmpiLayout* out, size_t out_bytes, int* rc) {
    const struct fi_mcastcoll_request request = request_of(input, room, part, root);
    const PmpiArrival arrival = {.to = out, .room = room, .bytes = out_bytes};
    return pmpi_run(g, operation, &request, NULL != out ? pmpi_deliver : NULL, &arrival, rc);
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

// Blocks of MPI_Allgatherv: where they belong, and how they travel.
typedef struct {
    PmpiLayout base;  // one element at the displacement 0
    PmpiList counts, places;
    size_t width;   // packed bytes of an element
    size_t part;    // packed bytes of the largest block
    bool in_order;  // all are alike and follow each other
    const uint8_t* room;
} Blocks;

static PmpiLayout block_at(const Blocks* b, int rank) {
    return pmpi_advance(b->base, pmpi_item(b->places, rank), pmpi_item(b->counts, rank));
}

// False: the call is left to PMPI.
static bool measure(Blocks* b, int members) {
    const int64_t width = NULL == b->counts.at || NULL == b->places.at ? -1 : pmpi_bytes(1, b->base.type);
    if (width <= 0) return false;
    MPI_Count most = 0, sum = 0;
    for (int i = 0; i < members; ++i) {
        const MPI_Count count = pmpi_item(b->counts, i);
        if (count < 0 || count > INT64_MAX / 4 / width / members) return false;
        most = count > most ? count : most;
        sum += count;
    }
    b->in_order = true;
    for (int i = 0; i < members; ++i)
        b->in_order = b->in_order && pmpi_item(b->counts, i) == most && pmpi_item(b->places, i) == i * most;
    b->width = (size_t)width;
    b->part = (size_t)(most * width);
    return fits((int64_t)b->part, members) && most * members <= 2 * sum;
}

static bool deliver_blocks(const PmpiGroup* g, const void* arrival) {
    const Blocks* b = arrival;
    for (int i = 0; i < g->size; ++i) {
        const PmpiLayout block = block_at(b, i);
        const size_t bytes = (size_t)block.count * b->width;
        if (0 != bytes && !pmpi_unpack(&block, b->room + b->part * (size_t)i, bytes)) return false;
    }
    return true;
}

bool pmpi_allgatherv(PmpiLayout in, void* buffer, PmpiList counts, PmpiList places, MPI_Datatype type,
                     MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiAllgatherv);
    if (NULL == g) return false;
    Blocks b = {.base = {.buffer = buffer, .count = 1, .type = type}, .counts = counts, .places = places};
    if (!measure(&b, g->size)) return pmpi_leave(kPmpiAllgatherv);
    const size_t all = b.part * (size_t)g->size;
    const PmpiLayout mine = block_at(&b, g->rank);
    const PmpiLayout from = MPI_IN_PLACE == in.buffer ? mine : in;
    const size_t own = (size_t)mine.count * b.width;
    uint8_t* room = b.in_order ? pmpi_room(g, &b.base, all) : pmpi_bounce(g, 1, all);
    if (NULL == room) return pmpi_fail(g, kPmpiAllgatherv, FI_ENOMEM, rc);
    const bool bounced = room == g->bounce[1];
    uint8_t* slot = room + b.part * (size_t)g->rank;
    const uint8_t* input = slot;
    bool good = true;
    if (own == b.part && MPI_IN_PLACE != in.buffer)
        good = NULL != (input = pmpi_input(g, &in, b.part));
    else if (bounced)
        good = 0 == own || pmpi_pack(&from, slot, own);
    if (bounced && own < b.part) memset(slot + own, 0, b.part - own);
    if (!good) return pmpi_fail(g, kPmpiAllgatherv, FI_ENOMEM, rc);
    b.room = room;
    const struct fi_mcastcoll_request request = request_of(input, room, b.part, 0);
    return pmpi_run(g, kPmpiAllgatherv, &request, bounced ? deliver_blocks : NULL, &b, rc);
}

bool pmpi_gather(PmpiLayout in, PmpiLayout out, int root, MPI_Comm comm, int* rc) {
    PmpiGroup* g = pmpi_route(comm, kPmpiGather);
    if (NULL == g) return false;
    const bool am_root = g->rank == root;
    const int64_t part = am_root ? pmpi_bytes(out.count, out.type) : pmpi_bytes(in.count, in.type);
    if (root < 0 || root >= g->size || !fits(part, g->size)) return pmpi_leave(kPmpiGather);
    const size_t own = (size_t)part * (size_t)root, all = (size_t)part * (size_t)g->size;
    const PmpiLayout result = am_root ? times(out, g->size) : out;
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
    const PmpiLayout source = am_root ? times(in, g->size) : in;
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
    const PmpiLayout result = times(out, g->size);
    uint8_t* room = pmpi_room(g, &result, all);
    const uint8_t* input = NULL;
    if (MPI_IN_PLACE == in.buffer) {
        uint8_t* copy = pmpi_bounce(g, 0, all);
        input = NULL != copy && pmpi_pack(&result, copy, all) ? copy : NULL;
    } else {
        const PmpiLayout source = times(in, g->size);
        input = pmpi_input(g, &source, all);
    }
    if (NULL == room || NULL == input) return pmpi_fail(g, kPmpiAlltoall, FI_ENOMEM, rc);
    return run(g, kPmpiAlltoall, 0, input, room, (size_t)part, &result, all, rc);
}
