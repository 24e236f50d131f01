// WaitSet: a sleeping thread wakes for the set's descriptors and at the alarm.
#include <criterion/criterion.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/wait_set.h"

using namespace mcastcoll;
using namespace mcastcoll::transport;

namespace {

bool rings_within(const WaitSet& set, int milliseconds) {
    pollfd entry{set.descriptor(), POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
}

}  // namespace

Test(wait_set, rings_at_the_alarm_and_not_before) {
    WaitSet set;
    cr_assert(set.open().ok());
    cr_assert(!rings_within(set, 5));
    cr_assert(set.set_alarm(monotonic_now() + Nanoseconds::from_ms(30)));
    cr_assert(!rings_within(set, 5));
    cr_assert(rings_within(set, 5000));
    cr_assert(set.set_alarm(kNever));
    cr_assert(!rings_within(set, 5), "none");
    cr_assert(set.set_alarm(Nanoseconds{}));
    cr_assert(rings_within(set, 5000), "one that has passed rings at once");
}

Test(wait_set, an_alarm_is_brought_forward_only) {
    WaitSet set;
    cr_assert(set.open().ok());
    const Nanoseconds now = monotonic_now();
    cr_assert(set.set_alarm(now));
    set.bring_forward(now + Nanoseconds::from_ms(60'000));
    cr_assert(rings_within(set, 5000), "the earlier one stands");
    cr_assert(set.set_alarm(now + Nanoseconds::from_ms(60'000)));
    set.bring_forward(now);
    cr_assert(rings_within(set, 5000));
}

Test(wait_set, rings_for_a_descriptor) {
    WaitSet set;
    cr_assert(set.open().ok());
    int pipe[2];
    cr_assert_eq(::pipe(pipe), 0);
    cr_assert(set.add(pipe[0]).ok());
    cr_assert(set.add(-1).ok(), "none");
    cr_assert(!rings_within(set, 5));
    cr_assert_eq(::write(pipe[1], "x", 1), 1);
    cr_assert(rings_within(set, 5000));
    cr_assert(!set.add(pipe[0]).ok(), "what the system refuses is an error");
    ::close(pipe[0]);
    ::close(pipe[1]);
}
