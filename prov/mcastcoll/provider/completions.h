// Completions for the application, in the completion queues of both products: in order, each returned as an
// entry of the queue's format or, if the operation failed, as an error.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ring.h"

namespace mcastcoll::provider {

struct Completion {
    void* op_context = nullptr;
    std::uint64_t flags = 0;
    std::size_t length = 0;
    void* buffer = nullptr;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    int error = 0;             // positive FI_E*
    std::size_t left_out = 0;  // bytes that did not fit into the buffer
};

class Completions {
  public:
    Completions(fi_cq_format format, std::size_t capacity) : format_(format), ring_(capacity) {}

    // Whether there are completions. The only call that does not need the lock of the queue.
    bool any() const { return any_.load(std::memory_order_acquire); }
    std::size_t size() const { return ring_.size(); }
    std::size_t capacity() const { return ring_.capacity(); }
    void grow(std::size_t capacity) { ring_.grow(capacity); }
    // Adds a completion. There must be room.
    void push(const Completion& completion);
    // Returns the number of completions taken; -FI_EAGAIN if there is none, -FI_EAVAIL if the next one is an
    // error. Takes none if `buffer` is null. `source` may be null.
    ssize_t take(void* buffer, std::size_t count, fi_addr_t* source);
    // Returns 1, or -FI_EAGAIN if the next completion is not an error.
    ssize_t take_error(fi_cq_err_entry& entry, std::uint32_t api_version);

  private:
    std::byte* write(std::byte* at, const Completion& completion) const;

    const fi_cq_format format_;
    Ring<Completion> ring_;
    std::atomic<bool> any_{false};
};

}  // namespace mcastcoll::provider
