// What is going to happen, in order of time and, at the same time, of scheduling. An event is 32 bytes and
// can stand for a whole run of endpoints to which the same thing happens at the same moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parcel.h"

namespace mcastcoll::sim {

struct Event {
    enum class What : std::uint8_t {
        enter,   // a parcel reaches the switch of site `first`
        arrive,  // a parcel reaches the hosts of endpoints [first, first + count)
        serve,   // host `first` takes the next parcel out of its inbox
        wake,    // endpoints [first, first + count) wanted to be woken; tag says what for
    };
    Nanoseconds at{};
    std::uint64_t order : 56;
    std::uint64_t what : 4, tag : 4;
    std::uint32_t first = 0, count = 1;
    Parcel* parcel = nullptr;

    bool before(const Event& other) const { return at != other.at ? at < other.at : order < other.order; }
};
static_assert(sizeof(Event) == 32);

// A heap with four children per node: half the levels of a binary one, and siblings share two cache lines.
class EventQueue {
  public:
    bool empty() const { return heap_.empty(); }

    void push(Event event) {
        event.order = scheduled_++ & ((std::uint64_t{1} << 56) - 1);
        std::size_t at = heap_.size();
        heap_.push_back(event);
        while (at > 0) {
            const std::size_t parent = (at - 1) / kChildren;
            if (!event.before(heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (heap_.empty()) return first;
        std::size_t at = 0;
        for (;;) {
            const std::size_t begin = at * kChildren + 1;
            if (begin >= heap_.size()) break;
            std::size_t least = begin;
            const std::size_t end = std::min(begin + kChildren, heap_.size());
            for (std::size_t child = begin + 1; child < end; ++child)
                if (heap_[child].before(heap_[least])) least = child;
            if (!heap_[least].before(last)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = last;
        return first;
    }

  private:
    static constexpr std::size_t kChildren = 4;
    std::vector<Event> heap_;
    std::uint64_t scheduled_ = 0;
};

}  // namespace mcastcoll::sim
