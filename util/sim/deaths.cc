#include "deaths.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "group/losses.h"
#include "levels/placement.h"
#include "random.h"

namespace mcastcoll::sim {
namespace {

using levels::MemberPlace;
using levels::Placement;

// Clusters are numbered in the order of their first members.
void number(std::vector<MemberPlace>& places, std::uint32_t MemberPlace::*cluster) {
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (MemberPlace& place : places)
        place.*cluster =
            numbers.emplace(place.*cluster, static_cast<std::uint32_t>(numbers.size())).first->second;
}

// Members in any order over hosts, which are spread over sites.
std::vector<MemberPlace> draw_places(Random& random) {
    const auto members = static_cast<std::uint32_t>(random.between(2, 24));
    const auto hosts = static_cast<std::uint32_t>(random.between(1, members));
    const auto sites = static_cast<std::uint32_t>(random.between(1, std::min(hosts, 4U)));
    std::vector<MemberPlace> places(members);
    for (std::uint32_t rank = 0; rank < members; ++rank) {
        const auto host = static_cast<std::uint32_t>(rank < hosts ? rank : random.below(hosts));
        places[rank] = {host % sites, host, host % sites};
    }
    for (std::uint32_t i = members - 1; i > 0; --i) std::swap(places[i], places[random.below(i + 1)]);
    for (const auto cluster : {&MemberPlace::site, &MemberPlace::host, &MemberPlace::region})
        number(places, cluster);
    return places;
}

class Group {
  public:
    explicit Group(const std::vector<MemberPlace>& places) : told_(places.size(), false) {
        for (std::uint32_t rank = 0; rank < places.size(); ++rank) views_.emplace_back(rank, places);
    }
    std::uint32_t members() const { return static_cast<std::uint32_t>(views_.size()); }
    // Whether one watches the other: they share a level.
    bool watches(std::uint32_t one, std::uint32_t other) const {
        const Placement& view = views_[one];
        return has(view.host(), other) || (view.leads_host() && has(view.segment(), other)) ||
               (view.leads_site() && has(view.sites(), other));
    }
    // Hears of the end, and passes it on at once.
    void hear(std::uint32_t rank, std::uint32_t dead) {
        if (rank == dead || told_[rank]) return;
        told_[rank] = true;
        const Placement& view = views_[rank];
        for (const std::uint32_t next : view.host()) hear(next, dead);
        if (view.leads_host())
            for (const std::uint32_t next : view.segment()) hear(next, dead);
        for (const std::uint32_t next : group::whom_to_tell(view, rank_of(dead), true)) hear(next, dead);
    }
    bool told(std::uint32_t rank) const { return told_[rank]; }

  private:
    static bool has(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    }
    std::vector<Placement> views_;
    std::vector<bool> told_;
};

}  // namespace

std::string run_death(std::uint64_t seed) {
    Random random(seed ^ 0x6465617468);
    Group group(draw_places(random));
    const auto dead = static_cast<std::uint32_t>(random.below(group.members()));
    std::vector<std::uint32_t> finders;
    for (std::uint32_t rank = 0; rank < group.members(); ++rank)
        if (rank != dead && group.watches(rank, dead)) finders.push_back(rank);
    if (finders.empty()) return fmt::format("nobody watches rank {}", dead);
    const std::uint32_t finder = finders[random.below(finders.size())];
    group.hear(finder, dead);
    for (std::uint32_t rank = 0; rank < group.members(); ++rank)
        if (rank != dead && !group.told(rank))
            return fmt::format("rank {} of {} finds rank {} dead, and rank {} is not told", finder,
                               group.members(), dead, rank);
    return {};
}

}  // namespace mcastcoll::sim
