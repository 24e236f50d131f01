#include "arrival.h"

#include "base/types.h"

namespace mcastcoll::sim {

void Arrival::wake(Network& network, std::uint32_t first, std::uint32_t members, const Step& step,
                   Nanoseconds start, std::uint32_t tag, Random& random) const {
    if (pattern == Pattern::together) return network.wake_run(first, members, start, tag);
    const auto one = static_cast<std::uint32_t>(random.below(members));
    for (std::uint32_t rank = 0; rank < members; ++rank) {
        const bool root = rank == index_of(step.root);
        const bool late = pattern == Pattern::root_first  ? !root
                          : pattern == Pattern::root_late ? root
                                                          : rank == one;
        const Nanoseconds by_all = pattern == Pattern::skew ? random.up_to(by) : late ? by : Nanoseconds{};
        network.wake(first + rank, start + by_all, tag);
    }
}

}  // namespace mcastcoll::sim
