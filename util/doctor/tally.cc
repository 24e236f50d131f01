#include "tally.h"

#include <algorithm>

namespace mcastcoll::doctor {

void Tally::take(std::uint32_t number) {
    if (number >= kMax) return;
    if (number < seen_.size() && seen_[number]) {
        ++duplicates_;
        return;
    }
    ++datagrams_;
    if (number < seen_.size()) ++late_;
    if (number >= seen_.size()) seen_.resize(number + 1);
    seen_[number] = true;
}

ReceivedStream Tally::result(unsigned from, Phase phase, std::uint64_t sent) const {
    ReceivedStream received{from, phase, datagrams_, duplicates_, late_, 0};
    std::uint64_t gap = 0;
    for (std::uint64_t i = 0; i < sent; ++i) {
        gap = i < seen_.size() && seen_[i] ? 0 : gap + 1;
        received.longest_gap = std::max(received.longest_gap, gap);
    }
    return received;
}

}  // namespace mcastcoll::doctor
