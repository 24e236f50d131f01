// OwnProcess tells whether the current process is the one that made an object or a child of it by fork(). A
// child inherits its parent's objects: their descriptors are the same sockets, timers and poll sets, and
// sealing with their keys would use nonces that the parent uses as well. So a child must not use them.
#pragma once

#include <pthread.h>

#include <atomic>

namespace mcastcoll {

class OwnProcess {
  public:
    OwnProcess() : generation_((count_forks(), forks_.load(std::memory_order_relaxed))) {}
    // False: the current process is a child that fork() made after this object.
    bool is_here() const { return generation_ == forks_.load(std::memory_order_relaxed); }

  private:
    static void count_forks() {
        [[maybe_unused]] static const int counts =
            ::pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
    }
    // Forks between the first process that counted and this one.
    static inline std::atomic<unsigned> forks_{0};

    const unsigned generation_;
};

}  // namespace mcastcoll
