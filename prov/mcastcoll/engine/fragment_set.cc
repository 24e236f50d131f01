#include "engine/fragment_set.h"

namespace mcastcoll::engine {

bool FragmentSet::add(std::uint32_t index) {
    if (empty()) from = to = index;
    const std::uint32_t low = std::min(from, index), high = std::max(to, index + 1);
    if (high - low > bits.capacity()) return false;
    bits.set(index);
    from = low;
    to = high;
    return true;
}

}  // namespace mcastcoll::engine
