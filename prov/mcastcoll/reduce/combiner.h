// How two vectors become one: the only thing that the levels of a reduction know of its datatype and
// operator.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll {

struct Combiner {
    // inout[i] = inout[i] op in[i] for so many elements. Both are aligned for their type, and do not overlap
    // unless they are the same.
    void (*combine)(void* inout, const void* in, std::size_t elements) = nullptr;
    std::uint32_t element_bytes = 1;

    void operator()(void* inout, const void* in, std::size_t bytes) const {
        if (combine != nullptr) combine(inout, in, bytes / element_bytes);
    }
};

}  // namespace mcastcoll
