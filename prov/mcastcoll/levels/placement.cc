#include "levels/placement.h"

#include <algorithm>

namespace mcastcoll::levels {
namespace {

std::uint32_t position(Ranks ranks, std::uint32_t rank) {
    const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() || *found != rank ? kNotThere
                                                  : static_cast<std::uint32_t>(found - ranks.begin());
}

}  // namespace

Placement::Placement(std::uint32_t self, const Places& places) : self_(self), places_(places) {
    const std::uint32_t own = segment_of(self);
    for (std::uint32_t host = 0; host < hosts(); ++host)
        if (places_.segment_of_host(host) == own) segment_.push_back(host_leaders()[host]);
    host_self_ = position(host(), self);
    segment_self_ = position(segment_, self);
}

Placement::Placement(std::uint32_t self, const std::vector<MemberPlace>& places)
    : Placement(self, std::make_shared<const std::vector<std::uint32_t>>(Places::lay_out(places))) {}

Placement::Placement(std::uint32_t self, std::shared_ptr<const std::vector<std::uint32_t>> numbers)
    : Placement(self, Places::view(*numbers).value()) {
    own_numbers_ = std::move(numbers);
}

std::uint32_t Placement::host_root(std::uint32_t root) const {
    return host_of(root) == host_of(self_) ? position(host(), root) : 0;
}

std::uint32_t Placement::segment_root(std::uint32_t root) const {
    return segment_of(root) == segment_of(self_) ? position(segment_, host_leader(root)) : 0;
}

}  // namespace mcastcoll::levels
