// The sliding bitmap, compared with a plain set; and the smoothed times.
#include <criterion/criterion.h>

#include <random>
#include <set>

#include "base/window_bitmap.h"
#include "engine/smoothed_time.h"

using namespace mcastcoll;
using engine::SmoothedTime;

TestSuite(bitmap, .timeout = 300);

Test(bitmap, capacity_is_a_power_of_two_of_at_least_64) {
    const struct {
        std::uint32_t requested, got;
    } cases[] = {{0, 64}, {1, 64}, {64, 64}, {65, 128}, {256, 256}, {257, 512}, {1000, 1024}};
    for (const auto& c : cases) cr_assert_eq(WindowBitmap(c.requested).capacity(), c.got, "%u", c.requested);
}

Test(bitmap, set_test_clear) {
    WindowBitmap bitmap(128);
    cr_assert(bitmap.none());
    for (std::uint32_t i : {0U, 63U, 64U, 127U}) {
        cr_assert(!bitmap.test(i));
        bitmap.set(i);
        cr_assert(bitmap.test(i));
        cr_assert(bitmap.test(i + 128), "indices live modulo the capacity");
    }
    bitmap.clear(63);
    cr_assert(!bitmap.test(63) && bitmap.test(64) && !bitmap.none());
    bitmap.clear_all();
    cr_assert(bitmap.none());
}

Test(bitmap, find_set_agrees_with_a_set) {
    std::mt19937 random(1);
    for (std::uint32_t capacity : {64U, 128U, 512U}) {
        WindowBitmap bitmap(capacity);
        std::set<std::uint32_t> model;
        std::uint32_t base = 0;
        for (int round = 0; round < 20000; ++round) {
            const std::uint32_t index = base + static_cast<std::uint32_t>(random() % capacity);
            if (random() % 3 != 0) {
                bitmap.set(index);
                model.insert(index);
            } else {
                bitmap.clear(index);
                model.erase(index);
            }
            const std::uint32_t from = base + static_cast<std::uint32_t>(random() % capacity);
            const std::uint32_t to =
                from + static_cast<std::uint32_t>(random() % (base + capacity - from + 1));
            const auto next = model.lower_bound(from);
            const std::uint32_t expected = next != model.end() && *next < to ? *next : to;
            cr_assert_eq(bitmap.find_set(from, to), expected, "round %d: [%u, %u)", round, from, to);
            cr_assert_eq(bitmap.none(), model.empty());
            if (random() % 4 == 0) {  // the window slides: the owner clears the bits that leave the window
                bitmap.clear(base);
                model.erase(base++);
            }
        }
    }
}

Test(bitmap, find_set_of_nothing) {
    WindowBitmap bitmap(64);
    bitmap.set(5);
    cr_assert_eq(bitmap.find_set(5, 5), 5U);
    cr_assert_eq(bitmap.find_set(9, 7), 7U, "an empty range ends at its end");
    cr_assert_eq(bitmap.find_set(6, 69), 69U);
    cr_assert_eq(bitmap.find_set(6, 70), 69U, "the bit of 5 is the bit of 69");
}

TestSuite(timing, .timeout = 300);

Test(timing, first_sample_replaces_the_guess) {
    SmoothedTime time(Nanoseconds{1000});
    cr_assert_eq(time.mean().value, 1000);
    time.sample(Nanoseconds{40000});
    cr_assert_eq(time.mean().value, 40000);
}

Test(timing, follows_and_narrows) {
    SmoothedTime time(Nanoseconds{1000});
    time.sample(Nanoseconds{100000});
    const auto wide = time.deadline(4, Nanoseconds{}, kNever);
    for (int i = 0; i < 200; ++i) time.sample(Nanoseconds{20000});
    cr_assert(std::abs(time.mean().value - 20000) < 100, "%ld", static_cast<long>(time.mean().value));
    cr_assert(time.deadline(4, Nanoseconds{}, kNever) < wide);
    cr_assert(time.deadline(4, Nanoseconds{}, kNever) >= time.mean());
}

Test(timing, deadlines_are_bounded) {
    SmoothedTime time(Nanoseconds{1000});
    cr_assert_eq(time.deadline(4, Nanoseconds{50000}, Nanoseconds{60000}).value, 50000);
    for (int i = 0; i < 10; ++i) time.sample(Nanoseconds{INT64_C(1) << 40});
    cr_assert_eq(time.deadline(4, Nanoseconds{50000}, Nanoseconds{60000}).value, 60000);
}

Test(timing, a_clock_that_steps_back_counts_as_nothing) {
    SmoothedTime time(Nanoseconds{1000});
    for (int i = 0; i < 100; ++i) time.sample(Nanoseconds{-5});
    cr_assert_eq(time.mean().value, 0);
    cr_assert(time.deadline(4, Nanoseconds{7}, Nanoseconds{9}).value == 7);
}
