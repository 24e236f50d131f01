#include "host/rings.h"

#include <errno.h>

#include "host/liveness.h"

namespace mcastcoll::host {
namespace {

// A member's areas, beginning on a page of their own, so that they can lie in its own NUMA node.
std::size_t member_bytes(std::uint32_t slots, std::size_t slot_bytes) {
    return (sizeof(MemberArea) + slots * slot_bytes + 4095) / 4096 * 4096;
}

}  // namespace

Rings::Rings(Header& header, std::uint32_t self)
    : alarm_(header), self_(self), slots_(header.slots), slot_bytes_(header.slot_bytes), peers_(header.size) {
    std::byte* at = reinterpret_cast<std::byte*>(&header + 1);
    for (Peer& peer : peers_) {
        auto* area = reinterpret_cast<MemberArea*>(at);
        peer = {&area->card, &area->left, area->lines.data(), at + sizeof(MemberArea)};
        at += member_bytes(slots_, slot_bytes_);
    }
}

std::size_t Rings::bytes_for(std::uint32_t members, std::uint32_t slots, std::uint32_t slot_bytes) {
    return sizeof(Header) + members * member_bytes(slots, slot_bytes);
}

void Rings::mismatch() {
    alarm_.fail(EMSGSIZE);
}

bool Rings::is_alive(std::uint32_t member) const {
    return host::is_alive(card(member).pid, card(member).start_time);
}

bool Rings::raise_watermark(Step step, std::uint64_t ring) {
    watermark_ = step;
    for (std::uint32_t member = 0; member < peers_.size(); ++member) {
        const Step left = peers_[member].left->step.load(std::memory_order_acquire);
        if (left >= watermark_) continue;
        watermark_ = left;
        awaited_ = member;
    }
    return watermark_ + ring > step;
}

}  // namespace mcastcoll::host
