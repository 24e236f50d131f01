// The parts of a host::Team, each alone: no other member, no clock.
#include <criterion/criterion.h>

#include <vector>

#include "host/backoff.h"
#include "host/failure_detector.h"
#include "host/window.h"

using namespace mcastcoll;
using namespace mcastcoll::host;

namespace {

constexpr Nanoseconds ms(std::int64_t count) {
    return Nanoseconds::from_ms(count);
}

// Turns until the first that yields, at most 1000.
int turns_until_yield(Backoff& backoff) {
    for (int turn = 1; turn <= 1000; ++turn)
        if (backoff.next().yields) return turn;
    return 1001;
}

int turns_until_look(Backoff& backoff) {
    for (int turn = 1; turn <= 1000; ++turn)
        if (backoff.next().looks_around) return turn;
    return 1001;
}

}  // namespace

Test(host_parts, a_window_keeps_the_order_and_its_bound) {
    Window window;
    std::vector<Operation> operations(3 * Window::kMost);
    std::size_t added = 0, taken = 0;
    cr_assert(window.empty());
    for (int round = 0; round < 4; ++round) {
        while (!window.full()) window.add(operations[added++]);
        cr_assert_eq(added - taken, Window::kMost);
        for (int i = 0; i < 50; ++i) {
            cr_assert_eq(&window.oldest(), &operations[taken]);
            cr_assert_eq(&window.take(), &operations[taken++]);
        }
    }
    while (!window.empty()) cr_assert_eq(&window.take(), &operations[taken++]);
    cr_assert_eq(taken, added);
}

Test(host_parts, the_clock_is_read_after_sixteen_polls_or_a_pause) {
    FailureDetector detector;
    for (int poll = 1; poll < 16; ++poll) cr_assert_eq(detector.on_idle(), false, "poll %d", poll);
    cr_assert(detector.on_idle());
    detector.is_due(ms(1));
    cr_assert_eq(detector.on_idle(), false);
    detector.expect_pause();
    cr_assert(detector.on_idle());
    cr_assert(detector.on_idle(), "until the clock was read");
    detector.is_due(ms(2));
    cr_assert_eq(detector.on_idle(), false);
    detector.on_progress();
    for (int poll = 1; poll < 16; ++poll) cr_assert_eq(detector.on_idle(), false, "counted anew");
}

Test(host_parts, who_is_silent_for_50_ms_is_looked_at) {
    FailureDetector detector;
    const struct {
        std::int64_t at_ms;
        bool moves_before, due;
    } table[] = {{1000, false, false},  // the first look only tells the time
                 {1049, false, false}, {1050, false, true},  {1051, false, false}, {1100, false, true},
                 {1140, true, false},  {1189, false, false}, {1190, false, true},  {9000, false, true},
                 {9001, true, false},  {9050, true, false},  {9099, false, false}, {9100, false, true}};
    for (const auto& row : table) {
        if (row.moves_before) detector.on_progress();
        cr_assert_eq(detector.is_due(ms(row.at_ms)), row.due, "at %ld ms", static_cast<long>(row.at_ms));
    }
}

Test(host_parts, deadlines_are_a_quarter_of_the_silence) {
    FailureDetector detector;
    cr_assert_eq(detector.next_deadline(ms(7)).value, ms(7).value, "at once, to learn since when");
    cr_assert(detector.on_idle(), "and by the clock");
    detector.is_due(ms(10));
    cr_assert_eq((detector.next_deadline(ms(10)) - ms(10)).value, 20'000);
    cr_assert_eq((detector.next_deadline(ms(11)) - ms(11)).value, 250'000);
    cr_assert_eq((detector.next_deadline(ms(99)) - ms(99)).value, 1'000'000);
    detector.on_progress();
    cr_assert_eq(detector.next_deadline(ms(100)).value, ms(100).value);
}

Test(host_parts, with_a_core_each_members_spin_then_yield_then_sleep) {
    Backoff backoff;
    backoff.use(false);
    cr_assert_eq(backoff.looks(), 64);
    cr_assert_eq(turns_until_yield(backoff), 1001);
    backoff.on_progress();
    cr_assert_eq(turns_until_look(backoff), 64);
    const struct {
        std::int64_t at_us, nap_us;
        bool then_yields;
    } table[] = {{5000, 0, false}, {6000, 0, false}, {6001, 0, true}, {24'999, 0, true}, {25'000, 500, true}};
    for (const auto& row : table) {
        const Nanoseconds nap = backoff.nap(Nanoseconds::from_us(row.at_us));
        cr_assert_eq(nap.value, row.nap_us * 1000, "at %ld us", static_cast<long>(row.at_us));
        cr_assert_eq(backoff.next().yields, row.then_yields, "at %ld us", static_cast<long>(row.at_us));
    }
    backoff.on_other_progress();
    cr_assert_eq(backoff.next().yields, false, "the caller's work counts as progress");
    cr_assert_eq(backoff.nap(ms(100)).value, 0);
}

Test(host_parts, sleeps_double_up_to_10_ms_and_begin_anew) {
    Backoff backoff;
    backoff.use(true);
    cr_assert_eq(backoff.looks(), 1);
    cr_assert_eq(turns_until_yield(backoff), 17);
    cr_assert_leq(turns_until_look(backoff), 4);
    Nanoseconds now = ms(1);
    cr_assert_eq(backoff.nap(now).value, 0);
    now = ms(2);
    for (const std::int64_t us : {500, 1000, 2000, 4000, 8000, 10'000, 10'000}) {
        const Nanoseconds nap = backoff.nap(now);
        cr_assert_eq(nap.value, us * 1000);
        now = now + nap;
        backoff.on_woken(now);
        cr_assert_eq(backoff.nap(now + Nanoseconds::from_us(99)).value, 0, "woken in vain, looks for 100 us");
        now = now + Nanoseconds::from_us(100);
    }
    backoff.on_progress();
    cr_assert_eq(turns_until_yield(backoff), 17);
    cr_assert_eq(backoff.nap(now).value, 0);
    cr_assert_eq(backoff.nap(now + ms(1)).value, 500'000);
}

Test(host_parts, who_shares_a_core_yields_and_moves_on_ever_more_rarely) {
    Backoff backoff;
    backoff.use(false);
    cr_assert_eq(backoff.next().yields, false);
    for (const int looks : {64, 128, 256}) {
        for (int look = 1; look < looks; ++look) cr_assert_eq(backoff.on_core(true), false, "look %d", look);
        cr_assert(backoff.on_core(true));
    }
    cr_assert(backoff.next().yields);
    cr_assert_eq(backoff.looks(), 1);
    backoff.on_progress();
    cr_assert_eq(backoff.next().yields, false, "forgotten when something has come");
    cr_assert_leq(turns_until_look(backoff), 3, "but looked at soon");
    cr_assert_eq(turns_until_look(backoff), 60, "once");
    for (int look = 1; look < 511; ++look) cr_assert_eq(backoff.on_core(true), false);
    cr_assert_eq(backoff.on_core(false), false);
    cr_assert_eq(backoff.on_core(true), false, "not in a row");
}
