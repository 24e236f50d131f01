// Fragments to send, no two of which are further apart than the window.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "base/window_bitmap.h"
#include "wire/bytes.h"

namespace mcastcoll::engine {

struct FragmentSet {
    WindowBitmap bits;
    std::uint32_t from = 0, to = 0;  // all set bits lie in [from, to)
    // Not an aggregate: inside another aggregate, g++ 12 frees the bits twice when a later member throws.
    explicit FragmentSet(std::uint32_t window) : bits(window) {}
    bool empty() const { return from >= to; }
    // Returns false if the fragment is further than the window from the rest.
    bool add(std::uint32_t index);
    // The first fragment of the set, or `to` if the set is empty.
    std::uint32_t first() { return from = bits.find_set(from, to); }
    // The next fragment of the set after `index`, or `to`.
    std::uint32_t after(std::uint32_t index) const { return bits.find_set(index + 1, to); }
    void drop_below(std::uint32_t index) {
        while (from < std::min(index, to)) bits.clear(from++);
    }
    void clear() {
        if (to > 0) bits.clear_all();
        from = to = 0;
    }
};

// Calls `use` with each fragment named in a NAK's bitmap, whose first bit is fragment `from`.
template <typename Use>
void for_each_named(Bytes bitmap, std::uint32_t from, Use use) {
    for (std::uint32_t i = 0; i < bitmap.size() * 8 && i < UINT32_MAX - from; ++i)
        if (wire::test_bit(bitmap.data(), i)) use(from + i);
}

}  // namespace mcastcoll::engine
