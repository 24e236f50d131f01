#include "levels/placement.h"

#include <algorithm>

namespace mcastcoll::levels {
namespace {

std::uint32_t position(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? kNotThere : static_cast<std::uint32_t>(found - ranks.begin());
}

}  // namespace

Placement::Placement(std::uint32_t self, std::vector<MemberPlace> places)
    : self_(self), places_(std::move(places)) {
    for (std::uint32_t rank = 0; rank < members(); ++rank) {
        MemberPlace& place = places_[rank];
        if (place.host >= host_leaders_.size()) host_leaders_.push_back(rank);
        place.segment = places_[host_leaders_[place.host]].segment;
        if (place.segment >= segment_leaders_.size()) segment_leaders_.push_back(rank);
        place.site = places_[segment_leaders_[place.segment]].site;
    }
    const MemberPlace own = places_[self];
    for (std::uint32_t rank = 0; rank < members(); ++rank) {
        if (places_[rank].host == own.host) host_.push_back(rank);
        if (places_[rank].segment == own.segment && host_leader(rank) == rank) segment_.push_back(rank);
    }
    host_self_ = position(host_, self);
    segment_self_ = position(segment_, self);
}

std::uint32_t Placement::host_root(std::uint32_t root) const {
    return host_of(root) == host_of(self_) ? position(host_, root) : 0;
}

std::uint32_t Placement::segment_root(std::uint32_t root) const {
    return segment_of(root) == segment_of(self_) ? position(segment_, host_leader(root)) : 0;
}

}  // namespace mcastcoll::levels
