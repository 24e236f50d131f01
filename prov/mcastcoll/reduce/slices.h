// How a vector is dealt out to members: reduce_scatter, and whatever shares the work of a reduction.
#pragma once

#include <algorithm>
#include <cstddef>

namespace mcastcoll {

struct Slice {
    std::size_t offset = 0, bytes = 0;
};

// The elements of one of `members`: as many for everybody, and one more for each of the first few where that
// does not come out even. A vector of fewer elements than members leaves the last ones without any.
constexpr Slice slice_of(std::size_t member, std::size_t members, std::size_t elements,
                         std::size_t element_bytes) {
    const std::size_t each = elements / members, more = elements % members;
    const std::size_t before = each * member + std::min(member, more);
    return {before * element_bytes, (each + (member < more ? 1 : 0)) * element_bytes};
}

}  // namespace mcastcoll
