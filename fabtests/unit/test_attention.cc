// Which sources a process polls: expected ones first, and none is neglected for long.
#include <criterion/criterion.h>

#include "group/attention.h"

using namespace mcastcoll;
using engine::Expectation;
using group::Attention;

namespace {

constexpr Nanoseconds kBegin = Nanoseconds::from_ms(5'000);
constexpr Expectation kByMulticast{true, false};

}  // namespace

Test(attention, the_first_turn_looks_everywhere) {
    Attention attention;
    cr_assert(attention.turn(kByMulticast, false, kBegin) == engine::kAnything);
    cr_assert(attention.turn(kByMulticast, false, kBegin) == kByMulticast);
}

Test(attention, so_many_turns_look_at_what_is_expected_and_the_next_everywhere) {
    Attention attention;
    for (int round = 0; round < 5; ++round) {
        cr_assert(attention.turn(kByMulticast, false, kBegin) == engine::kAnything);
        for (unsigned turn = 0; turn < Attention::kNarrowTurns; ++turn)
            cr_assert(attention.turn(kByMulticast, false, kBegin) == kByMulticast);
    }
}

// One nanosecond less, and exactly the limit.
Test(attention, who_is_seldom_let_run_looks_everywhere) {
    for (const std::int64_t less : {1, 0}) {
        Attention attention;
        attention.turn(kByMulticast, false, kBegin);
        const Nanoseconds later = kBegin + Nanoseconds{Attention::kNarrowTime.value - less};
        cr_assert(attention.turn(kByMulticast, false, later) ==
                  (less == 1 ? kByMulticast : engine::kAnything));
    }
}

Test(attention, with_a_reason_every_turn_looks_everywhere) {
    Attention attention;
    for (int turn = 0; turn < 10; ++turn)
        cr_assert(attention.turn(kByMulticast, true, kBegin) == engine::kAnything);
    // The poll of all sources restarts the interval.
    cr_assert(attention.turn({}, false, kBegin) == Expectation{});
}
