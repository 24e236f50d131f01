// Window: the operations that are posted and not over, in their order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/operation.h"

namespace mcastcoll::host {

class Window {
  public:
    static constexpr std::size_t kMost = 128;

    bool empty() const { return first_ == end_; }
    bool full() const { return end_ - first_ == kMost; }
    Operation& oldest() const { return *open_[first_ % kMost]; }
    void add(Operation& operation) { open_[end_++ % kMost] = &operation; }
    // The oldest, which is over.
    Operation& take() { return *open_[first_++ % kMost]; }

  private:
    std::array<Operation*, kMost> open_{};
    std::uint64_t first_ = 0, end_ = 0;
};

}  // namespace mcastcoll::host
