// OwnProcess reports whether the current process made an object or is a child of that process by fork(). A
// child inherits its parent's objects but must not use them: the descriptors refer to the same sockets,
// timers and poll sets, and sealing with the inherited keys would reuse the parent's nonces.
#pragma once

#include <pthread.h>

#include <atomic>

namespace mcastcoll {

class OwnProcess {
  public:
    OwnProcess() : generation_((count_forks(), forks_.load(std::memory_order_relaxed))) {}
    // False: the current process is a child, and fork() ran after this object was made.
    bool is_here() const { return generation_ == forks_.load(std::memory_order_relaxed); }

  private:
    static void count_forks() {
        [[maybe_unused]] static const int counts =
            ::pthread_atfork(nullptr, nullptr, [] { forks_.fetch_add(1, std::memory_order_relaxed); });
    }
    // Number of forks between the first process that counted and the current process.
    static inline std::atomic<unsigned> forks_{0};

    const unsigned generation_;
};

}  // namespace mcastcoll
