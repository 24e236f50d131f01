// A turn visits only items that are ready or due, regardless of the number of idle items.
#include <criterion/criterion.h>

#include <memory>
#include <random>
#include <vector>

#include "group/run_queue.h"

using namespace mcastcoll;
using group::QueuePlace;
using group::RunQueue;

namespace {

struct Item {
    bool busy = false;
    Nanoseconds next = kNever;
    unsigned visits = 0;
    QueuePlace run;
};

struct World {
    explicit World(std::size_t items) {
        for (std::size_t i = 0; i < items; ++i) {
            list.push_back(std::make_unique<Item>());
            queue.reserve(list.size());
            queue.wake(*list.back());
        }
    }
    // Runs a turn as a CollectiveEndpoint does; returns the number of items visited.
    unsigned turn(Nanoseconds now) {
        unsigned visits = 0;
        queue.wake_due(now);
        queue.for_each_ready([&](Item& item) {
            ++visits;
            ++item.visits;
            if (item.next <= now) item.next = kNever;
        });
        queue.settle([](const Item& item) { return item.busy; }, [](const Item& item) { return item.next; });
        return visits;
    }

    std::vector<std::unique_ptr<Item>> list;
    RunQueue<Item> queue;
};

constexpr Nanoseconds at(std::int64_t ms) {
    return Nanoseconds::from_ms(ms);
}

}  // namespace

Test(run_queue, a_turn_costs_what_is_ready_and_due_not_what_is_there) {
    World world(10'000);
    cr_assert_eq(world.turn(at(1)), 10'000U, "a new item is looked at once");
    cr_assert_eq(world.turn(at(2)), 0U);
    world.list[17]->busy = true;
    world.queue.wake(*world.list[17]);
    world.queue.wake(*world.list[17]);
    for (int i = 3; i < 10; ++i) cr_assert_eq(world.turn(at(i)), 1U, "the busy one, once a turn");
    world.list[99]->next = at(20);
    world.queue.wake(*world.list[99]);
    cr_assert_eq(world.turn(at(10)), 2U);
    cr_assert(world.queue.next_deadline() == at(20));
    cr_assert_eq(world.turn(at(19)), 1U);
    cr_assert_eq(world.turn(at(20)), 2U);
    cr_assert(world.queue.next_deadline() == kNever);
    cr_assert_eq(world.list[99]->visits, 3U);
}

Test(run_queue, what_is_woken_by_another_is_visited_in_the_same_turn) {
    World world(3);
    world.turn(at(1));
    world.queue.wake(*world.list[0]);
    unsigned visits = 0;
    world.queue.for_each_ready([&](Item&) {
        ++visits;
        world.queue.wake(*world.list[2]);
    });
    cr_assert_eq(visits, 2U);
}

// Compared with a list searched from end to end.
Test(run_queue, deadlines_come_in_order_whatever_is_woken_and_removed) {
    std::mt19937 random(7);
    World world(60);
    Nanoseconds now{};
    for (int round = 0; round < 3000; ++round) {
        const std::size_t i = random() % world.list.size();
        Item& item = *world.list[i];
        switch (random() % 4) {
            case 0:
                item.next = random() % 3 == 0 ? kNever : now + at(1 + static_cast<int>(random() % 50));
                world.queue.wake(item);
                break;
            case 1:
                item.busy = !item.busy;
                world.queue.wake(item);
                break;
            case 2:
                if (world.list.size() < 20) break;
                world.queue.remove(item);
                world.list.erase(world.list.begin() + static_cast<std::ptrdiff_t>(i));
                break;
            default:
                if (world.list.size() > 100) break;
                world.list.push_back(std::make_unique<Item>());
                world.queue.reserve(world.list.size());
                world.queue.wake(*world.list.back());
        }
        now = now + at(static_cast<int>(random() % 5));
        world.turn(now);
        Nanoseconds earliest = kNever;
        for (const auto& one : world.list) {
            cr_assert_eq(one->run.ready_at != QueuePlace::kNone, one->busy);
            if (one->busy) continue;
            cr_assert(one->next > now, "what was due was visited");
            earliest = std::min(earliest, one->next);
        }
        cr_assert(world.queue.next_deadline() == earliest);
    }
}
