// RunQueue: the groups that a progress turn visits. A program may hold thousands of groups of which a few are
// active, and a visit to every group would make a turn slower with each idle group.
//
// An item is ready while it may make progress. Otherwise it waits in a heap for its deadline, if any. New
// work wakes an item, and settle() moves finished items out of the ready list. The cost of a turn depends on
// the ready and due items only, and only reserve() allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/types.h"

namespace mcastcoll::group {

// The position of an item in the queue. Each item stores it in its member `run`.
struct QueuePlace {
    static constexpr std::size_t kNone = SIZE_MAX;
    std::size_t ready_at = kNone, heap_at = kNone;
    Nanoseconds deadline = kNever;  // while the item is in the heap
};

template <typename Item>
class RunQueue {
  public:
    // Reserves room for this number of items.
    void reserve(std::size_t items) {
        for (auto* list : {&ready_, &heap_})
            if (list->capacity() < items) list->reserve(std::max(items, 2 * list->capacity()));
    }
    void remove(Item& item) noexcept {
        if (item.run.ready_at != QueuePlace::kNone) leave_ready(item);
        if (item.run.heap_at != QueuePlace::kNone) leave_heap(item);
    }
    void wake(Item& item) noexcept {
        if (item.run.ready_at != QueuePlace::kNone) return;
        if (item.run.heap_at != QueuePlace::kNone) leave_heap(item);
        item.run.ready_at = ready_.size();
        ready_.push_back(&item);
    }
    void wake_due(Nanoseconds now) noexcept {
        while (!heap_.empty() && heap_.front()->run.deadline <= now) wake(*heap_.front());
    }
    // Moves ready items for which stays(item) is false into the heap, to wait for deadline(item).
    template <typename Stays, typename Deadline>
    void settle(Stays&& stays, Deadline&& deadline) {
        for (std::size_t i = 0; i < ready_.size();) {
            Item& item = *ready_[i];
            if (stays(item)) {
                ++i;
                continue;
            }
            leave_ready(item);
            item.run.deadline = deadline(item);
            if (item.run.deadline != kNever) enter_heap(item);
        }
    }
    // The body may wake items, which are visited in the same round, but must not remove items.
    template <typename Body>
    void for_each_ready(Body&& body) {
        for (std::size_t i = 0; i < ready_.size(); ++i) body(*ready_[i]);
    }
    std::span<Item* const> ready() const { return ready_; }
    // The earliest deadline of the waiting items.
    Nanoseconds next_deadline() const { return heap_.empty() ? kNever : heap_.front()->run.deadline; }

  private:
    void leave_ready(Item& item) noexcept {
        const std::size_t at = std::exchange(item.run.ready_at, QueuePlace::kNone);
        ready_[at] = ready_.back();
        ready_.pop_back();
        if (at < ready_.size()) ready_[at]->run.ready_at = at;
    }
    void enter_heap(Item& item) noexcept {
        heap_.push_back(&item);
        rise(heap_.size() - 1);
    }
    void leave_heap(Item& item) noexcept {
        const std::size_t at = std::exchange(item.run.heap_at, QueuePlace::kNone);
        Item* const last = heap_.back();
        heap_.pop_back();
        if (last == &item) return;
        heap_[at] = last;
        rise(at);
        sink(last->run.heap_at);
    }
    void rise(std::size_t at) noexcept {
        Item* const item = heap_[at];
        while (at > 0 && item->run.deadline < heap_[(at - 1) / 2]->run.deadline) {
            put(at, heap_[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        put(at, item);
    }
    void sink(std::size_t at) noexcept {
        Item* const item = heap_[at];
        for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
            if (child + 1 < heap_.size() && heap_[child + 1]->run.deadline < heap_[child]->run.deadline)
                ++child;
            if (item->run.deadline <= heap_[child]->run.deadline) break;
            put(at, heap_[child]);
        }
        put(at, item);
    }
    void put(std::size_t at, Item* item) noexcept {
        heap_[at] = item;
        item->run.heap_at = at;
    }

    std::vector<Item*> ready_, heap_;
};

}  // namespace mcastcoll::group
