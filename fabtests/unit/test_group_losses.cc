// Members that are gone: what a group knows of them, and whom it tells.
#include <criterion/criterion.h>

#include <algorithm>
#include <map>
#include <vector>

#include "group/members.h"
#include "levels/placement.h"
#include "sim/random.h"

using namespace mcastcoll;
using namespace mcastcoll::group;
using Ranks = std::vector<std::uint32_t>;

namespace {

// Ranks 0 to 7: four hosts of two, in two sites.
Ranks told_by(std::uint32_t self, Rank lost, bool joined = true) {
    std::vector<levels::MemberPlace> places;
    for (std::uint32_t rank = 0; rank < 8; ++rank) places.push_back({rank / 4, rank / 2, rank / 4});
    return whom_to_tell(levels::Placement(self, places), lost, joined);
}

}  // namespace

Test(losses, the_first_reason_counts) {
    Losses losses;
    losses.add(rank_of(3), 5, "its host is gone");
    losses.add(rank_of(3), 6, "a message to it failed");
    losses.add(rank_of(1), 5, "");
    const auto found = losses.take_found();
    cr_assert_eq(found.size(), 3U);
    cr_assert(found[1].rank == rank_of(3) && found[1].error == 6);
    cr_assert(losses.take_found().empty(), "told twice");
    cr_assert_str_eq(losses.reason(rank_of(3))->c_str(), "its host is gone");
    cr_assert_null(losses.reason(rank_of(2)));
}

Test(losses, who_has_gone_is_an_error_when_it_is_needed) {
    Losses losses;
    losses.let_go({rank_of(4), 5});
    losses.let_go({rank_of(6), 7});
    cr_assert_eq(losses.needed([](std::uint32_t) { return false; }).rank, kNoRank);
    const Losses::Loss loss = losses.needed([](std::uint32_t rank) { return rank == 6; });
    cr_assert(loss.rank == rank_of(6) && loss.error == 7);
    cr_assert_eq(losses.needed([](std::uint32_t) { return true; }).error, 5);
}

Test(losses, whom_a_member_tells) {
    // A member that leads nothing: its host's memory and its leader's engine do it.
    cr_assert(told_by(1, rank_of(3)).empty());
    cr_assert(told_by(2, rank_of(3)).empty());
    // The leader of a site tells the others'.
    cr_assert(told_by(0, rank_of(3)) == Ranks{4});
    cr_assert(told_by(0, kNoRank) == Ranks{4});
    // A dead leader of a host has members, one of a site a whole site, but for those whom the engine tells.
    cr_assert(told_by(0, rank_of(2)) == (Ranks{3, 4}));
    cr_assert(told_by(3, rank_of(2)) == (Ranks{0, 2}));
    cr_assert(told_by(4, rank_of(0)) == (Ranks{0, 1, 2, 3}));
    cr_assert(told_by(2, rank_of(0)) == (Ranks{0, 1, 3, 4}));
    cr_assert(told_by(1, rank_of(0)) == (Ranks{0, 2, 3, 4}));
}

Test(losses, while_a_group_forms_its_levels_may_be_missing) {
    cr_assert(told_by(3, rank_of(7), false) == (Ranks{0, 2}));
    cr_assert(told_by(2, rank_of(7), false) == (Ranks{0, 3}));
    cr_assert(told_by(0, rank_of(7), false) == (Ranks{1, 4}));
}

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
std::vector<MemberPlace> draw_places(sim::Random& random) {
    const auto members = static_cast<std::uint32_t>(random.between(2, 24));
    const auto hosts = static_cast<std::uint32_t>(random.between(1, members));
    const auto sites = static_cast<std::uint32_t>(random.between(1, std::min(hosts, 4U)));
    std::vector<MemberPlace> places(members);
    for (std::uint32_t rank = 0; rank < members; ++rank) {
        const auto host = static_cast<std::uint32_t>(rank < hosts ? rank : random.below(hosts));
        places[rank] = {host % sites, host, host % sites};
    }
    for (std::uint32_t i = members - 1; i > 0; --i) std::swap(places[i], places[random.below(i + 1)]);
    for (const auto cluster : {&MemberPlace::segment, &MemberPlace::host, &MemberPlace::site})
        number(places, cluster);
    return places;
}

// Who watches whom, and who tells whom.
class Members {
  public:
    explicit Members(const std::vector<MemberPlace>& places) : told_(places.size(), false) {
        for (std::uint32_t rank = 0; rank < places.size(); ++rank) views_.emplace_back(rank, places);
    }
    std::uint32_t count() const { return static_cast<std::uint32_t>(views_.size()); }
    // Whether one watches the other: they share a level.
    bool watches(std::uint32_t one, std::uint32_t other) const {
        const Placement& view = views_[one];
        return has(view.host(), other) || (view.leads_host() && has(view.segment(), other)) ||
               (view.leads_segment() && has(view.segments(), other));
    }
    // Hears of the end, and passes it on at once.
    void hear(std::uint32_t rank, std::uint32_t dead) {
        if (rank == dead || told_[rank]) return;
        told_[rank] = true;
        const Placement& view = views_[rank];
        for (const std::uint32_t next : view.host()) hear(next, dead);
        if (view.leads_host())
            for (const std::uint32_t next : view.segment()) hear(next, dead);
        for (const std::uint32_t next : whom_to_tell(view, rank_of(dead), true)) hear(next, dead);
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

Test(losses, from_one_member_that_knows_everybody_alive_hears) {
    for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
        sim::Random random(seed);
        Members members(draw_places(random));
        const auto dead = static_cast<std::uint32_t>(random.below(members.count()));
        std::vector<std::uint32_t> finders;
        for (std::uint32_t rank = 0; rank < members.count(); ++rank)
            if (rank != dead && members.watches(rank, dead)) finders.push_back(rank);
        cr_assert_not(finders.empty(), "nobody watches rank %u", dead);
        members.hear(finders[random.below(finders.size())], dead);
        for (std::uint32_t rank = 0; rank < members.count(); ++rank)
            cr_assert(rank == dead || members.told(rank), "seed %lu: rank %u of %u is not told",
                      static_cast<unsigned long>(seed), rank, members.count());
    }
}

Test(patience, who_is_late_is_asked_at_once_and_every_second_while_something_is_open) {
    const auto ms = [](std::int64_t count) { return Nanoseconds::from_ms(count); };
    Patience patience(kNever);
    patience.begin(ms(1));
    cr_assert(patience.ask_at() == kNever, "there is nobody to ask");
    patience.add_late(3, ms(10));
    cr_assert(patience.ask_at() == ms(10));
    cr_assert_eq(patience.ask(true, ms(10)), 0U);
    cr_assert(patience.ask_at() == ms(1010));
    patience.add_late(5, ms(20));
    cr_assert(patience.ask_at() == ms(20), "the new one at once");
    cr_assert_eq(patience.ask(false, ms(20)), 1U);
    cr_assert(patience.ask_at() == kNever, "nothing is open");
    patience.begin(ms(30));
    cr_assert(patience.ask_at() == ms(1030));
    cr_assert(patience.late() == (Ranks{3, 5}));
}

Test(patience, an_operation_stands_still_from_when_it_last_came_further) {
    const auto ms = [](std::int64_t count) { return Nanoseconds::from_ms(count); };
    Patience patience(ms(100));
    patience.begin(ms(10));
    cr_assert(patience.stalled_at(false) == ms(110));
    patience.moved(ms(50));
    cr_assert(patience.stalled_at(false) == ms(150));
    cr_assert(patience.stalled_at(true) == ms(200), "the engine comes first");
    Patience endless(kNever);
    endless.begin(ms(10));
    cr_assert(endless.stalled_at(true) == kNever);
}
