// How two vectors are combined. Nothing else in the protocol depends on a reduction's datatype and operator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll {

struct Combiner {
    // out[i] = one[i] op other[i] for `elements` elements. The pointers are aligned for the element type. The
    // vectors do not overlap, unless they are identical.
    void (*combine)(void* out, const void* one, const void* other, std::size_t elements) = nullptr;
    std::uint32_t element_bytes = 1;

    void operator()(void* out, const void* one, const void* other, std::size_t bytes) const {
        if (combine != nullptr) combine(out, one, other, bytes / element_bytes);
    }
    void operator()(void* inout, const void* in, std::size_t bytes) const {
        (*this)(inout, inout, in, bytes);
    }
};

}  // namespace mcastcoll
