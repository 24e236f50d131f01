// The open operations of a group.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ofi/request.h"

namespace mcastcoll::ofi {

// An open operation of a group and the destination of its outcome. The group's levels identify the operation
// by a cookie.
struct OpenOperation {
    void* context = nullptr;
    std::uint64_t flags = 0;
    // Receives the outcome of a blocking call; null: the outcome is written to the completion queue.
    int* over = nullptr;
    std::shared_ptr<Copies> copies;
    bool is_open = false;
};

class OpenOperations {
  public:
    static constexpr std::size_t kMax = 256;

    OpenOperations() : operations_(kMax) {
        for (std::size_t i = kMax; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    bool full() const { return free_.empty(); }
    // May be called without the lock.
    bool empty() const { return count_.load() == 0; }
    // Call only when not full. Does not throw.
    std::uint32_t open(OpenOperation operation) {
        const std::uint32_t cookie = free_.back();
        free_.pop_back();
        operations_[cookie] = std::move(operation);
        operations_[cookie].is_open = true;
        ++count_;
        return cookie;
    }
    OpenOperation& at(std::uint32_t cookie) { return operations_[cookie]; }
    OpenOperation close(std::uint32_t cookie) {
        free_.push_back(cookie);
        --count_;
        return std::exchange(operations_[cookie], {});
    }

  private:
    std::vector<OpenOperation> operations_;
    std::vector<std::uint32_t> free_;  // capacity is never reduced, so close() cannot fail
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace mcastcoll::ofi
