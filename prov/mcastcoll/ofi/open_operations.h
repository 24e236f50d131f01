// Operations of a group that are open: where the outcome of each goes, by the cookie that the group's levels
// know it by.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ofi/message_form.h"

namespace mcastcoll::ofi {

struct OpenOperation {
    void* context = nullptr;
    std::uint64_t flags = 0;
    int* over = nullptr;  // of a blocking call: where its outcome goes; null: to the completion queue
    std::shared_ptr<Copies> copies;
};

class OpenOperations {
  public:
    static constexpr std::size_t kMost = 256;

    OpenOperations() : operations_(kMost), is_open_(kMost) {
        for (std::size_t i = kMost; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    bool full() const { return free_.empty(); }
    // May be asked without the lock.
    bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
    // Call only when not full. Throws nothing.
    std::uint32_t open(OpenOperation operation) {
        const std::uint32_t cookie = free_.back();
        free_.pop_back();
        operations_[cookie] = std::move(operation);
        is_open_[cookie] = true;
        ++count_;
        return cookie;
    }
    bool is_open(std::uint32_t cookie) const { return is_open_[cookie]; }
    OpenOperation& at(std::uint32_t cookie) { return operations_[cookie]; }
    OpenOperation close(std::uint32_t cookie) {
        free_.push_back(cookie);
        is_open_[cookie] = false;
        --count_;
        return std::exchange(operations_[cookie], {});
    }

  private:
    std::vector<OpenOperation> operations_;
    std::vector<bool> is_open_;
    std::vector<std::uint32_t> free_;  // never shorter than it was made
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace mcastcoll::ofi
