#include "reliable/proof.h"

#include <algorithm>

namespace mcastcoll::reliable {
namespace {

constexpr std::size_t kFromOffset = 16, kSerialOffset = 48, kPart = 8;

}  // namespace

Proof::Proof(const std::optional<wire::Key>& key) {
    if (key) mac_.emplace(*key);
}

wire::Mac::Tag Proof::tag_of(Bytes packet) {
    if (!on()) return {};
    std::array<std::byte, 2 * kPart> nonce;
    std::ranges::copy(packet.subspan(kFromOffset, kPart), nonce.begin());
    std::ranges::copy(packet.subspan(kSerialOffset, kPart), nonce.begin() + kPart);
    return mac_->tag(nonce, packet.first(kTagOffset), packet.subspan(kHeaderBytes));
}

void Proof::stamp(MutableBytes packet) {
    std::ranges::copy(tag_of(packet), packet.begin() + kTagOffset);
}

bool Proof::is_right(Bytes packet) {
    static_assert(kTagOffset + wire::Mac::kBytes == kHeaderBytes);
    return wire::are_equal(tag_of(packet), packet.subspan(kTagOffset, wire::Mac::kBytes));
}

}  // namespace mcastcoll::reliable
