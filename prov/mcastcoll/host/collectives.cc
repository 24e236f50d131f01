// Which way an operation goes, by its kind and length.
#include "host/collectives.h"

namespace mcastcoll::host {
namespace {

Advance go_through_slots(Context& c, Operation& operation) {
    switch (operation.kind) {
        case Kind::broadcast:
            return broadcast(c, operation);
        case Kind::barrier:
            return c.clusters.leaders.empty() ? gather_one(c, operation) : barrier_by_clusters(c, operation);
        case Kind::reduce:
            // One vector of each for the root alone: worth a share only when it does not fit in a slot.
            return operation.bytes > c.bounds.reduce_whole ? reduce_shares(c, operation)
                                                           : gather_one(c, operation);
        case Kind::allreduce:
            return operation.bytes >= c.bounds.share_from ? reduce_shares(c, operation)
                                                          : gather_one(c, operation);
        case Kind::reduce_scatter:
            return operation.bytes > c.rings.slot_bytes() ? reduce_scatter(c, operation)
                                                          : gather_one(c, operation);
        case Kind::gather:
        case Kind::allgather:
            return operation.bytes > kInlineBytes ? gather_blocks(c, operation) : gather_one(c, operation);
        case Kind::scatter:
            return scatter(c, operation);
        case Kind::alltoall:
            return alltoall(c, operation);
    }
    return Advance::idle;
}

}  // namespace

Advance advance(Context& c, Operation& operation) {
    if (operation.bytes < c.bounds.from(operation.kind)) return go_through_slots(c, operation);
    const bool reduces = is_reduction(operation.kind);
    const Way way = reduces || operation.kind == Kind::alltoall ? agree_on_way(c, operation) : Way::direct;
    if (way == Way::undecided) return Advance::idle;
    if (way == Way::slots) return go_through_slots(c, operation);
    return reduces ? reduce_directly(c, operation) : copy_blocks(c, operation);
}

}  // namespace mcastcoll::host
