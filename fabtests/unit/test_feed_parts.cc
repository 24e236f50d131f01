// The parts of a Feed, each alone: when a hole is reported, and who is known.
#include <criterion/criterion.h>

#include "feed/members.h"

using namespace mcastcoll;
using namespace mcastcoll::feed;

namespace {

constexpr Nanoseconds kTimeout = Nanoseconds::from_ms(1000);

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

constexpr MemberId id(std::uint64_t number) {
    return static_cast<MemberId>(number);
}

}  // namespace

Test(feed_gap_timer, a_hole_is_reported_again_less_and_less_often) {
    GapTimer gap;
    cr_assert(gap.deadline() == kNever);
    gap.watch(true, ms(10));
    const Nanoseconds first = gap.deadline();
    cr_assert(first > ms(10) && first < ms(11), "what was reordered has time to come");
    gap.watch(true, ms(10) + Nanoseconds::from_us(100));
    cr_assert(gap.deadline() == first, "more packets do not put it off");
    gap.reported(7, ms(11));
    cr_assert(gap.deadline() == ms(13));
    gap.reported(7, ms(13));
    cr_assert(gap.deadline() == ms(17));
    for (int i = 0; i < 10; ++i) gap.reported(7, ms(100));
    cr_assert(gap.deadline() == ms(164), "the longest pause");
    gap.reported(8, ms(200));
    cr_assert(gap.deadline() == ms(202), "what moves is reported soon");
    gap.watch(false, ms(201));
    cr_assert(gap.deadline() == kNever);
}

Test(feed_members, who_has_gone_is_not_found) {
    Members members;
    members.add(id(1), ms(0));
    Member& second = members.add(id(2), ms(0));
    cr_assert(members.find(id(2)) == &second);
    second.receives = second.gone = true;
    cr_assert_null(members.find(id(2)));
    cr_assert_eq(members.receivers(), 0);
    members.bury();
    cr_assert_not_null(members.find(id(1)));
    cr_assert_eq(std::distance(members.begin(), members.end()), 1);
}

Test(feed_members, the_slowest_receiver_is_waited_for) {
    Members members;
    cr_assert_eq(members.acked_by_all(9), 9);
    for (std::uint64_t i = 1; i <= 3; ++i) {
        Member& member = members.add(id(i), ms(0));
        member.receives = i != 1;
        member.acked = 2 * i;
        member.room = 100 * i;
    }
    cr_assert_eq(members.receivers(), 2);
    cr_assert_eq(members.acked_by_all(9), 4, "the first receives nothing");
    cr_assert_eq(members.least_room(512), 200);
    cr_assert_eq(members.least_room(50), 50);
}

Test(feed_members, the_longest_silent_makes_room_if_nobody_waits_for_it) {
    Members members;
    for (std::uint64_t i = 1; i <= Members::kMostMembers; ++i) {
        cr_assert(!members.full());
        members.add(id(i), ms(static_cast<std::int64_t>(i)));
    }
    cr_assert(members.full());
    cr_assert_null(members.evict(ms(1) + kTimeout, kTimeout), "nobody was silent for long enough");
    const auto evicted = members.evict(ms(2) + kTimeout, kTimeout);
    cr_assert(evicted != nullptr && evicted->id == id(1));
    cr_assert(!members.full() && members.find(id(1)) == nullptr);
    members.find(id(2))->receives = true;
    cr_assert_null(members.evict(ms(5000), kTimeout), "a receiver is expelled, never forgotten");
}

Test(feed_members, a_pause_counts_against_nobody) {
    Members members;
    Member& member = members.add(id(1), ms(10));
    member.moved = ms(95);
    members.forgive(ms(80), ms(100));
    cr_assert(member.heard == ms(90));
    cr_assert(member.moved == ms(100), "never later than now");
}
