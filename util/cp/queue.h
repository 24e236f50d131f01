// Passes chunks from one thread to another.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "cp/chunk.h"

namespace mcastcoll::cp {

class Queue {
  public:
    void put(Chunk chunk);
    void close();
    // Returns nothing when the queue is closed and empty.
    Chunk take();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Chunk> chunks_;
    bool closed_ = false;
};

}  // namespace mcastcoll::cp
