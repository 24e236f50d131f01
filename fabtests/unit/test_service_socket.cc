// How fast hellos (the first messages of joins) are read from the service socket.
#include <criterion/criterion.h>

#include "ports/service_pace.h"

using namespace mcastcoll;
using ports::ServicePace;

namespace {

constexpr Nanoseconds kNow = Nanoseconds::from_ms(5'000);

}  // namespace

Test(service_pace, a_joining_endpoint_reads_all_it_can) {
    ServicePace pace;
    for (int turn = 0; turn < 10; ++turn) {
        cr_assert_eq(pace.may_read(true, true, kNow), transport::Rendezvous::kReceiveLimit);
        pace.has_read(transport::Rendezvous::kReceiveLimit, transport::Rendezvous::kReceiveLimit, true, kNow);
        cr_assert(pace.rests_until(true, kNow) == kNow);
    }
}

// The socket has no hello, one hello less than the limit, or exactly as many as the limit.
Test(service_pace, without_a_waiting_join_reads_are_limited) {
    for (const bool works : {false, true}) {
        const unsigned max = works ? ServicePace::kMaxAtWork : transport::Rendezvous::kReceiveLimit;
        for (const unsigned there : {0U, max - 1, max}) {
            ServicePace pace;
            cr_assert_eq(pace.may_read(false, works, kNow), max);
            pace.has_read(there, max, false, kNow);
            const bool rests = there == max;
            const Nanoseconds end = kNow + ServicePace::kPause, just_before = end - Nanoseconds{1};
            for (const Nanoseconds time : {kNow, just_before}) {
                cr_assert_eq(pace.may_read(false, works, time), rests ? 0 : max, "%u", there);
                cr_assert(pace.rests_until(false, time) == (rests ? end : time));
                pace.has_read(0, pace.may_read(false, works, time), false, time);
            }
            cr_assert_eq(pace.may_read(false, works, end), max);
            cr_assert_eq(pace.may_read(true, works, kNow), transport::Rendezvous::kReceiveLimit,
                         "a join begins");
        }
    }
}

Test(service_pace, foreign_datagrams_cause_a_pause) {
    ServicePace pace;
    pace.has_read(1, transport::Rendezvous::kReceiveLimit, true, kNow);
    cr_assert_eq(pace.may_read(false, false, kNow), 0);
    cr_assert_eq(pace.may_read(false, false, kNow + ServicePace::kPause),
                 transport::Rendezvous::kReceiveLimit);
}
