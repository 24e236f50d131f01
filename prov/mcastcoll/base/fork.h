// A child of fork() has its parent's objects: their descriptors are the same sockets, timers and poll sets,
// and their keys would seal other bytes under numbers that the parent uses, too. So a child leaves them
// alone.
#pragma once

#include <pthread.h>

#include <atomic>

namespace mcastcoll {

class OwnProcess {
  public:
    OwnProcess() : generation_((count_forks(), forks_.load(std::memory_order_relaxed))) {}
    // False: fork() has made this process since.
    bool is_here() const { return generation_ == forks_.load(std::memory_order_relaxed); }

  private:
    static void count_forks() {
        [[maybe_unused]] static const int counts =
            ::pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
    }
    static inline std::atomic<unsigned> forks_{0};  // from the first process that counts to this one

    const unsigned generation_;
};

}  // namespace mcastcoll
