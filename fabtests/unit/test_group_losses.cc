// Lost members: records in the group, and the members to inform.
#include <criterion/criterion.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "group/losses.h"
#include "group/stall_timer.h"
#include "levels/placement.h"
#include "levels/places.h"
#include "sim/random.h"

using namespace mcastcoll;
using namespace mcastcoll::group;
using Ranks = std::vector<std::uint32_t>;

namespace {

// Returns the ranks that member `self` informs of a loss. Ranks 0 to 7 are on four hosts of two, in two
// sites.
Ranks informed_by(std::uint32_t self, Rank lost, bool joined = true) {
    std::vector<levels::MemberPlace> places;
    for (std::uint32_t rank = 0; rank < 8; ++rank) places.push_back({rank / 4, rank / 2, rank / 4});
    return whom_to_inform(levels::Placement(self, places), lost, joined);
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
    cr_assert(losses.take_found().empty(), "reported twice");
    cr_assert_str_eq(losses.reason(rank_of(3))->c_str(), "its host is gone");
    cr_assert_null(losses.reason(rank_of(2)));
}

Test(losses, a_member_that_left_is_an_error_when_it_is_needed) {
    Losses losses;
    losses.let_go({rank_of(4), 5});
    losses.let_go({rank_of(6), 7});
    cr_assert_eq(losses.needed([](std::uint32_t) { return false; }).rank, kNoRank);
    const Losses::Loss loss = losses.needed([](std::uint32_t rank) { return rank == 6; });
    cr_assert(loss.rank == rank_of(6) && loss.error == 7);
    cr_assert_eq(losses.needed([](std::uint32_t) { return true; }).error, 5);
}

Test(losses, members_to_inform) {
    // Loss of a member without a leading role: the shared memory of the host and the engine of the leader
    // inform the survivors.
    cr_assert(informed_by(1, rank_of(3)).empty());
    cr_assert(informed_by(2, rank_of(3)).empty());
    // The leader of a site informs the leaders of the other sites.
    cr_assert(informed_by(0, rank_of(3)) == Ranks{4});
    cr_assert(informed_by(0, kNoRank) == Ranks{4});
    // The members around a dead leader exchange losses not reported by the engine.
    cr_assert(informed_by(0, rank_of(2)) == (Ranks{3, 4}));
    cr_assert(informed_by(3, rank_of(2)) == Ranks{0});
    cr_assert(informed_by(4, rank_of(0)) == (Ranks{1, 2}));
    cr_assert(informed_by(2, rank_of(0)) == (Ranks{1, 4}));
    cr_assert(informed_by(1, rank_of(0)) == (Ranks{2, 4}));
    // Ranks 5 and 6, which lead nothing, inform the members around the dead leader if they detect the death.
    cr_assert(informed_by(5, rank_of(0)) == (Ranks{1, 2, 4}));
    cr_assert(informed_by(6, rank_of(0)) == (Ranks{1, 2, 4}));
    cr_assert(informed_by(7, kNoRank).empty());
}

Test(losses, while_a_group_forms_its_levels_may_be_missing) {
    cr_assert(informed_by(3, rank_of(7), false) == (Ranks{0, 1, 2, 4, 5}));
    cr_assert(informed_by(2, rank_of(7), false) == (Ranks{0, 1, 3, 4}));
    cr_assert(informed_by(0, rank_of(7), false) == (Ranks{1, 2, 3, 4, 6}));
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

// Draws members in random order on hosts, which are spread over sites.
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

using Dead = std::set<std::uint32_t>;

// Which members monitor and inform which: a death spreads from the detecting members.
class Members {
  public:
    // `joined`: whether the members of a host share memory.
    Members(const std::vector<MemberPlace>& places, bool joined) : joined_(joined), said_(places.size()) {
        for (std::uint32_t rank = 0; rank < places.size(); ++rank) views_.emplace_back(rank, places);
    }
    std::uint32_t count() const { return static_cast<std::uint32_t>(views_.size()); }
    const Placement& view(std::uint32_t rank) const { return views_[rank]; }

    // Adds the notices of members that wait for a dead member and so detect its death: one member in each
    // level that the dead member shared with living members.
    void find(std::uint32_t lost, const Dead& dead, sim::Random& random) {
        const Placement& view = views_[lost];
        find_among(view.host(), lost, dead, random);
        if (view.leads_host()) find_among(view.segment(), lost, dead, random);
        if (view.leads_segment()) find_among(view.segments(), lost, dead, random);
    }
    // With messages between all members, any member may detect the death.
    void find_by(std::uint32_t finder, std::uint32_t lost) { notices_.push_back({finder, lost, false}); }
    // Delivers the reports in random order.
    void spread(const Dead& dead, sim::Random& random) {
        while (!notices_.empty()) {
            std::swap(notices_[random.below(notices_.size())], notices_.back());
            const Notice one = notices_.back();
            notices_.pop_back();
            if (!dead.contains(one.rank)) receive(one);
        }
    }
    bool informed(std::uint32_t rank) const { return !said_[rank].empty(); }
    std::uint64_t messages() const { return messages_; }
    std::size_t longest() const { return longest_; }
    void forget() {
        for (Dead& said : said_) said.clear();
        messages_ = longest_ = 0;
    }
    // Returns a living member that was not informed of all losses, if there is one.
    std::uint32_t uninformed(const Dead& dead) const {
        for (std::uint32_t rank = 0; rank < count(); ++rank)
            if (!dead.contains(rank) && !informed(rank)) return rank;
        return levels::kNotThere;
    }

  private:
    struct Notice {
        std::uint32_t rank, lost;
        bool by_message;
    };
    static bool has(levels::Ranks ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    }
    void find_among(levels::Ranks all, std::uint32_t lost, const Dead& dead, sim::Random& random) {
        Ranks ranks(all.begin(), all.end());
        std::erase_if(ranks, [&](std::uint32_t rank) { return rank == lost || dead.contains(rank); });
        if (!ranks.empty()) find_by(ranks[random.below(ranks.size())], lost);
    }
    // Gives a member a notice, which it forwards. A host's memory and an engine reach only their own members.
    void receive(const Notice& one) {
        const Placement& view = views_[one.rank];
        const auto forward = [&](levels::Ranks ranks) {
            const std::uint32_t lost = has(ranks, one.lost) ? one.lost : index_of(kNoRank);
            for (const std::uint32_t next : ranks) notices_.push_back({next, lost, false});
        };
        if (!informed(one.rank)) {
            if (joined_) forward(view.host());
            if (view.leads_host()) forward(view.segment());
        } else if (!one.by_message || said_[one.rank].size() == (joined_ ? kMaxDeathsSent : 1)) {
            return;
        }
        if (!said_[one.rank].insert(one.lost).second) return;
        const Ranks whom = whom_to_inform(view, rank_of(one.lost), joined_);
        for (const std::uint32_t next : whom) notices_.push_back({next, one.lost, true});
        messages_ += whom.size();
        longest_ = std::max(longest_, whom.size());
    }

    const bool joined_;
    std::vector<Placement> views_;
    std::vector<Dead> said_;  // by rank: losses reported to others
    std::vector<Notice> notices_;
    std::uint64_t messages_ = 0;
    std::size_t longest_ = 0;
};

// Returns the places of hosts with `each` members, spread over segments.
std::vector<MemberPlace> cluster(std::uint32_t hosts, std::uint32_t each, std::uint32_t segments) {
    std::vector<MemberPlace> places;
    for (std::uint32_t rank = 0; rank < hosts * each; ++rank) {
        const std::uint32_t host = rank / each;
        places.push_back({host % segments, host, host % segments});
    }
    return places;
}

void expect_informed(const Members& members, const Dead& dead, const char* what, std::uint64_t number) {
    const std::uint32_t uninformed = members.uninformed(dead);
    cr_assert_eq(uninformed, levels::kNotThere, "%s %lu: of the death of %u%s, rank %u of %u is not informed",
                 what, static_cast<unsigned long>(number), *dead.begin(),
                 dead.size() > 1 ? " and another" : "", uninformed, members.count());
}

}  // namespace

Test(losses, news_from_one_member_reaches_every_living_member) {
    for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
        sim::Random random(seed);
        Members members(draw_places(random), seed % 2 == 0);
        const auto lost = static_cast<std::uint32_t>(random.below(members.count()));
        const auto finder = static_cast<std::uint32_t>(random.below(members.count() - 1));
        members.find_by(finder + (finder >= lost ? 1 : 0), lost);
        members.spread({lost}, random);
        expect_informed(members, {lost}, "seed", seed);
    }
}

Test(losses, after_two_deaths_every_living_member_is_informed_of_one) {
    for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
        sim::Random random(seed);
        Members members(draw_places(random), seed % 2 == 0);
        Dead dead;
        while (dead.size() < 2) dead.insert(static_cast<std::uint32_t>(random.below(members.count())));
        for (const std::uint32_t lost : dead) members.find(lost, dead, random);
        members.spread(dead, random);
        expect_informed(members, dead, "seed", seed);
    }
}

namespace {

constexpr std::uint32_t kHosts = 32, kEach = 32, kAll = kHosts * kEach;

// Leaders and other members of the first hosts, of a leaf of the trees of leaders, and of the last host.
const Ranks kVictims{0, 1, 2, 31, 32, 33, 128, 160, 161, 512, 700, 31 * 32, 31 * 32 + 1, kAll - 1};

}  // namespace

Test(losses, a_death_takes_about_a_message_a_member) {
    for (const std::uint32_t segments : {1U, 4U, kHosts}) {
        Members members(cluster(kHosts, kEach, segments), true);
        for (const std::uint32_t lost : kVictims) {
            sim::Random random(lost + 1);
            members.forget();
            members.find(lost, {lost}, random);
            members.spread({lost}, random);
            expect_informed(members, {lost}, "segments", segments);
            cr_assert_leq(members.messages(), kAll, "%u segments: of rank %u %lu messages", segments, lost,
                          static_cast<unsigned long>(members.messages()));
            cr_assert_leq(members.longest(), kHosts + kEach);
        }
    }
}

Test(losses, a_death_that_all_detect_takes_a_few_messages_a_member) {
    for (const std::uint32_t segments : {1U, 4U, kHosts}) {
        Members members(cluster(kHosts, kEach, segments), true);
        for (const std::uint32_t lost : kVictims) {
            sim::Random random(lost + 1);
            members.forget();
            for (std::uint32_t rank = 0; rank < kAll; ++rank)
                if (rank != lost) members.find_by(rank, lost);
            members.spread({lost}, random);
            expect_informed(members, {lost}, "segments", segments);
            cr_assert_leq(members.messages(), 2 * kAll, "%u segments: of rank %u %lu messages", segments,
                          lost, static_cast<unsigned long>(members.messages()));
        }
    }
}

Test(losses, two_deaths_take_a_few_messages_a_member) {
    for (const std::uint32_t segments : {1U, 4U, kHosts})
        for (const bool joined : {true, false}) {
            Members members(cluster(kHosts, kEach, segments), joined);
            for (const std::uint32_t one : kVictims)
                for (const std::uint32_t other : kVictims) {
                    if (one >= other) continue;
                    sim::Random random(one * kAll + other);
                    members.forget();
                    members.find(one, {one, other}, random);
                    members.find(other, {one, other}, random);
                    members.spread({one, other}, random);
                    expect_informed(members, {one, other}, "segments", segments);
                    cr_assert_leq(members.messages(), (joined ? 2 : 8) * kAll,
                                  "%u segments: of ranks %u and %u %lu messages", segments, one, other,
                                  static_cast<unsigned long>(members.messages()));
                }
        }
}

Test(stall_timer, late_members_get_a_request_at_once_and_every_second_while_an_operation_is_open) {
    const auto ms = [](std::int64_t count) { return Nanoseconds::from_ms(count); };
    StallTimer timer(kNever);
    timer.begin(ms(1));
    cr_assert(timer.request_at() == kNever, "there is no late member");
    timer.add_late(3, ms(10));
    cr_assert(timer.request_at() == ms(10));
    cr_assert_eq(timer.next_round(true, ms(10)), 0U);
    cr_assert(timer.request_at() == ms(1010));
    timer.add_late(5, ms(20));
    cr_assert(timer.request_at() == ms(20), "the new one at once");
    cr_assert_eq(timer.next_round(false, ms(20)), 1U);
    cr_assert(timer.request_at() == kNever, "nothing is open");
    timer.begin(ms(30));
    cr_assert(timer.request_at() == ms(1030));
    cr_assert(timer.late() == (Ranks{3, 5}));
}

Test(stall_timer, an_operation_stands_still_from_when_it_last_came_further) {
    const auto ms = [](std::int64_t count) { return Nanoseconds::from_ms(count); };
    StallTimer timer(ms(100));
    timer.begin(ms(10));
    cr_assert(timer.stalled_at(false) == ms(110));
    timer.moved(ms(50));
    cr_assert(timer.stalled_at(false) == ms(150));
    cr_assert(timer.stalled_at(true) == ms(200), "the engine comes first");
    StallTimer endless(kNever);
    endless.begin(ms(10));
    cr_assert(endless.stalled_at(true) == kNever);
}
