#include "host/rings.h"

#include <algorithm>

#include "host/process.h"

namespace mcastcoll::host {
namespace {

// The size of a member's area in whole pages, so that the area can be in the member's own NUMA node.
std::size_t area_bytes(std::uint32_t slots, std::size_t slot_bytes) {
    return (sizeof(MemberArea) + slots * slot_stride(slot_bytes) + 4095) / 4096 * 4096;
}

Areas areas_of(Header& header, const Shape& shape) {
    return {reinterpret_cast<std::byte*>(&header + 1), area_bytes(shape.slots, shape.slot_bytes),
            shape.members};
}

}  // namespace

Rings::Rings(Header& header, const Shape& shape, std::uint32_t self)
    : alarm(header, areas_of(header, shape), self),
      areas_(areas_of(header, shape)),
      self_(self),
      slots_(shape.slots),
      slot_bytes_(shape.slot_bytes) {}

std::size_t Rings::bytes_for(const Shape& shape) {
    return sizeof(Header) + shape.members * area_bytes(shape.slots, shape.slot_bytes);
}

bool Rings::is_alive(std::uint32_t member) const {
    return host::is_alive(record(member).pid, record(member).start_time);
}

// Stops at the first member behind, and continues from there in the next call: a waiting member checks a
// single peer, whatever the team's size.
bool Rings::raise_watermark(Step step, std::uint64_t ring) {
    if (lowest_ + ring <= step) looked_at_ = 0;
    if (looked_at_ == 0) lowest_ = step;
    for (; looked_at_ < areas_.members; ++looked_at_) {
        const Step left = areas_[looked_at_].left.step.load(std::memory_order_acquire);
        if (left + ring <= step) {
            awaited_ = looked_at_;
            return false;
        }
        lowest_ = std::min(lowest_, left);
    }
    watermark_ = std::max(watermark_, lowest_);
    looked_at_ = 0;
    return true;
}

}  // namespace mcastcoll::host
