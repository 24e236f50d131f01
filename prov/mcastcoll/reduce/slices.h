// How a vector is divided among members: for reduce_scatter, and for other ways to share the work of a
// reduction.
#pragma once

#include <algorithm>
#include <cstddef>

namespace mcastcoll::reduce {

struct Slice {
    std::size_t offset = 0, bytes = 0;
};

// Returns the slice of one of `members`: equal shares, and one more element for each of the first members if
// the division has a remainder. If there are fewer elements than members, the last members have no element.
constexpr Slice slice_of(std::size_t member, std::size_t members, std::size_t elements,
                         std::size_t element_bytes) {
    const std::size_t each = elements / members, more = elements % members;
    const std::size_t before = each * member + std::min(member, more);
    return {before * element_bytes, (each + (member < more ? 1 : 0)) * element_bytes};
}

}  // namespace mcastcoll::reduce
