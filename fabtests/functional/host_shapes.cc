#include "host_shapes.h"

#include <algorithm>

#include "reduce/slices.h"

namespace mcastcoll::test {

using Kind = CollectiveKind;

Shape shape_of(const Party& party) {
    const std::size_t one = party.elements;
    const std::size_t all = one * party.size, own = one * party.self;
    const bool is_root = party.root == party.self;
    switch (party.kind) {
        case Kind::broadcast:
            return {is_root ? one : 0, one, 0, false};
        case Kind::barrier:
            return {};
        case Kind::reduce:
            return {one, is_root ? one : 0, 0, false};
        case Kind::allreduce:
            return {one, one, 0, false};
        case Kind::allgather:
            return {one, all, own, false};
        case Kind::gather:
            return {one, is_root ? all : 0, own, false};
        case Kind::scatter:
            return {is_root ? all : 0, one, own, true};
        case Kind::alltoall:
            return {all, all, 0, false};
        case Kind::reduce_scatter:
            break;
    }
    return {one, reduce::slice_of(party.self, party.size, one, 1).bytes, 0, true};
}

Origin origin_of(const Party& party, std::size_t place) {
    const std::size_t block = std::max<std::size_t>(1, party.elements);
    const auto peer = static_cast<std::uint32_t>(place / block);
    switch (party.kind) {
        case Kind::broadcast:
            return {party.root, place};
        case Kind::scatter:
            return {party.root, party.self * party.elements + place};
        case Kind::allgather:
        case Kind::gather:
            return {peer, place % block};
        case Kind::alltoall:
            return {peer, party.self * party.elements + place % block};
        case Kind::reduce_scatter:
            return {0, reduce::slice_of(party.self, party.size, party.elements, 1).offset + place};
        case Kind::barrier:
        case Kind::reduce:
        case Kind::allreduce:
            break;
    }
    return {0, place};
}

}  // namespace mcastcoll::test
