// The queue of future events, in virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "event.h"

namespace mcastcoll::sim {

class EventQueue {
  public:
    bool empty() const { return events_.empty(); }
    void push(Event event) {
        event.order = scheduled_++ & ((std::uint64_t{1} << 56) - 1);
        events_.push(event);
    }
    Event pop() {
        const Event first = events_.top();
        events_.pop();
        return first;
    }

  private:
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::uint64_t scheduled_ = 0;
};

}  // namespace mcastcoll::sim
