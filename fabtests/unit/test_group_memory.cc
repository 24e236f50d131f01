// Data kept by a CollectiveEndpoint from one join for the next, and the moment of discarding.
#include <criterion/criterion.h>

#include "base/types.h"
#include "group/recent.h"
#include "group/round_trips.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

template <std::size_t kMax>
void expect_bound() {
    for (const std::size_t count : {kMax - 1, kMax, kMax + 1}) {
        Recent<std::size_t, kMax> recent;
        for (std::size_t i = 0; i < count; ++i) recent.keep(i);
        const auto has = [&](std::size_t what) {
            return recent.latest([&](std::size_t one) { return one == what; }) != nullptr;
        };
        cr_assert_eq(has(0), count > 0 && count <= kMax, "of %zu with room for %zu", count, kMax);
        cr_assert(count < 2 || has(count - 1));
    }
}

}  // namespace

Test(memory, forgets_the_oldest_when_one_more_comes) {
    expect_bound<1>();
    expect_bound<64>();
    expect_bound<1024>();
}

Test(memory, finds_the_latest) {
    Recent<std::pair<int, int>, 4> recent;
    for (int i = 0; i < 4; ++i) recent.keep({i % 2, i});
    const auto of = [&](int which) {
        return recent.latest([&](const auto& one) { return one.first == which; });
    };
    cr_assert_eq(of(0)->second, 2);
    cr_assert_eq(of(1)->second, 3);
    recent.forget_if([](const auto& one) { return one.second >= 2; });
    cr_assert_eq(of(1)->second, 1);
    recent.forget_if([](const auto& one) { return one.first == 1; });
    cr_assert_null(of(1));
    cr_assert_eq(of(0)->second, 0);
}

Test(memory, keeps_round_trips_of_so_many_pairs) {
    for (const std::size_t count : {RoundTrips::kMax - 1, RoundTrips::kMax, RoundTrips::kMax + 1}) {
        RoundTrips times;
        for (std::size_t i = 0; i < count; ++i) times.keep(i + 1, 0, Nanoseconds::from_us(i));
        cr_assert(times.find(0, RoundTrips::kMax - 1).has_value());
        cr_assert_eq(times.find(RoundTrips::kMax, 0).has_value(), count >= RoundTrips::kMax);
        cr_assert_not(times.find(0, RoundTrips::kMax + 1).has_value());
        times.keep(0, 1, Nanoseconds::from_us(77));
        cr_assert_eq(times.find(1, 0)->value, 0, "the first message counts");
    }
}
