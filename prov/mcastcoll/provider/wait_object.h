// A descriptor that polls readable when any of several other descriptors does: the inner queue's and those of
// all collective endpoints. FI_GETWAIT returns this descriptor, and the provider's blocking reads sleep on
// it.
#pragma once

#include <atomic>

#include "base/file_descriptor.h"

namespace mcastcoll::provider {

class WaitObject {
  public:
    // inner_descriptor: the inner queue's, or -1. Returns false if the system has no descriptors or memory
    // left.
    bool open(int inner_descriptor);
    bool is_open() const { return poll_set_.valid(); }
    // Answers FI_GETWAIT.
    int get_wait(void* descriptor) const;
    // True if the inner queue's descriptor polls readable.
    bool inner_readable() const;

    // Returns false if the system has no memory for the descriptor, which then would not wake sleepers.
    [[nodiscard]] bool add(int descriptor);
    void remove(int descriptor);

    // Announces a sleep on the descriptor; called before the thread checks for work for the last time. The
    // announcement is never withdrawn, because the thread's wake-up is not reported and other threads may
    // still sleep. If all checks are made under one lock, the thread either sees pending work or is woken.
    void arm() { armed_.store(true, std::memory_order_relaxed); }
    // Announces a sleep while this object lives, for calls of sleep(). Any number of threads may sleep at the
    // same time.
    class Sleeper {
      public:
        explicit Sleeper(WaitObject& one) : wait_object_(one) {
            wait_object_.sleepers_.fetch_add(1, std::memory_order_relaxed);
        }
        ~Sleeper() { wait_object_.sleepers_.fetch_sub(1, std::memory_order_relaxed); }
        Sleeper(const Sleeper&) = delete;
        Sleeper& operator=(const Sleeper&) = delete;

      private:
        WaitObject& wait_object_;
    };
    bool armed() const {
        return armed_.load(std::memory_order_relaxed) || sleepers_.load(std::memory_order_relaxed) > 0;
    }
    // Wakes threads that sleep or are about to sleep, so that they check for work again. Only one of several
    // sleepers is certain to wake; if it leaves work for others it must wake again.
    int wake_now();
    // Does the same, but only if there are such threads. Needs the lock.
    void wake() {
        if (armed() && !woken_.exchange(true)) wake_now();
    }
    // Wakes sleepers and also ends a blocking read: take_signal() returns true once. Works without
    // descriptors too.
    int signal();
    bool take_signal() { return signalled_.exchange(false, std::memory_order_acquire); }
    bool has_signal() const { return signalled_.load(std::memory_order_acquire); }
    // Discards earlier wake-ups of all sleepers. The caller must check for work afterwards in any case.
    void reset();
    // Sleeps until a descriptor is readable or the time is over. Returns 0, or -FI_E* when interrupted.
    int sleep(int timeout_ms);

  private:
    FileDescriptor poll_set_, signal_;
    int inner_ = -1;
    std::atomic<bool> signalled_{false}, armed_{false}, woken_{false};
    std::atomic<unsigned> sleepers_{0};
};

}  // namespace mcastcoll::provider
