// Reusable buffers: take() waits while `max` of them are in use.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "cp/chunk.h"

namespace mcastcoll::cp {

class Pool : public std::enable_shared_from_this<Pool> {
  public:
    explicit Pool(std::size_t max) : max_(max) {}
    // Waits for a buffer, at most ten seconds; then allocates one more.
    Chunk take();
    // Lifts the limit `max`, so that no thread waits in take() any longer.
    void open_up();

  private:
    std::mutex mutex_;
    std::condition_variable one_is_back_;
    std::deque<std::unique_ptr<std::string>> free_;
    std::size_t max_, used_ = 0;
};

}  // namespace mcastcoll::cp
