#include "group/arrival.h"

#include <algorithm>

namespace mcastcoll::group {

bool Arrival::add(const wire::WelcomePart& part, std::size_t max_bytes) {
    if (part.offset == 0) bytes_.clear();
    if (part.offset != bytes_.size() || part.total > max_bytes) return false;
    bytes_.insert(bytes_.end(), part.bytes.begin(), part.bytes.end());
    return bytes_.size() == part.total;
}

std::vector<wire::ByteString> parts_of(Bytes welcome, const wire::MessageHead& head) {
    std::vector<wire::ByteString> parts;
    for (std::size_t offset = 0; offset < welcome.size(); offset += wire::kPartBytes) {
        const Bytes bytes = welcome.subspan(offset, std::min(wire::kPartBytes, welcome.size() - offset));
        parts.push_back(wire::encode(wire::WelcomePart{head,
                                                       static_cast<std::uint32_t>(offset),
                                                       static_cast<std::uint32_t>(welcome.size()),
                                                       {bytes.begin(), bytes.end()}}));
    }
    return parts;
}

}  // namespace mcastcoll::group
