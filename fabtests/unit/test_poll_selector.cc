// Which sources a process polls: expected ones first, and none is neglected for long.
#include <criterion/criterion.h>

#include "group/poll_selector.h"

using namespace mcastcoll;
using engine::PollHint;
using group::PollSelector;

namespace {

constexpr Nanoseconds kBegin = Nanoseconds::from_ms(5'000);
constexpr PollHint kByMulticast{true, false};

}  // namespace

Test(poll_selector, the_first_turn_polls_all) {
    PollSelector poll_selector;
    cr_assert(poll_selector.turn(kByMulticast, false, kBegin) == engine::kPollAll);
    cr_assert(poll_selector.turn(kByMulticast, false, kBegin) == kByMulticast);
}

Test(poll_selector, after_some_turns_with_the_hint_a_turn_polls_all) {
    PollSelector poll_selector;
    for (int round = 0; round < 5; ++round) {
        cr_assert(poll_selector.turn(kByMulticast, false, kBegin) == engine::kPollAll);
        for (unsigned turn = 0; turn < PollSelector::kNarrowTurns; ++turn)
            cr_assert(poll_selector.turn(kByMulticast, false, kBegin) == kByMulticast);
    }
}

// The interval between two polls is one nanosecond less than the limit, or exactly the limit.
Test(poll_selector, a_rarely_scheduled_process_polls_all) {
    for (const std::int64_t less : {1, 0}) {
        PollSelector poll_selector;
        poll_selector.turn(kByMulticast, false, kBegin);
        const Nanoseconds later = kBegin + Nanoseconds{PollSelector::kNarrowTime.value - less};
        cr_assert(poll_selector.turn(kByMulticast, false, later) ==
                  (less == 1 ? kByMulticast : engine::kPollAll));
    }
}

Test(poll_selector, with_a_reason_every_turn_polls_all) {
    PollSelector poll_selector;
    for (int turn = 0; turn < 10; ++turn)
        cr_assert(poll_selector.turn(kByMulticast, true, kBegin) == engine::kPollAll);
    // The poll of all sources restarts the interval.
    cr_assert(poll_selector.turn({}, false, kBegin) == PollHint{});
}
