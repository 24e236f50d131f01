// Members that are gone: what a group knows of them, and whom it tells.
#include <criterion/criterion.h>

#include <vector>

#include "group/losses.h"

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
