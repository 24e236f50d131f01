// A descriptor that polls readable when any of several others does: the inner queue's and every station's.
// This is what FI_GETWAIT hands out and what our own blocking reads sleep on.
#pragma once

#include <atomic>

#include "base/file_descriptor.h"

namespace mcastcoll::ofi {

class WaitObject {
  public:
    // The inner queue's, or -1 when there is none. False: the system has no descriptors or no memory left.
    bool open(int inner_descriptor);
    bool is_open() const { return poll_set_.valid(); }
    // Answers FI_GETWAIT.
    int get_wait(void* descriptor) const;
    // The inner queue's descriptor polls readable.
    bool inner_readable() const;

    // False: the system has no memory for it, and who sleeps would not be woken by it.
    [[nodiscard]] bool add(int descriptor);
    void remove(int descriptor);

    // Who is about to sleep on the descriptor says so before it looks around for the last time. It is never
    // taken back, since nobody tells us that he woke, and others may sleep on. With everything that it looks
    // at under one lock, it sees what there is or is woken.
    void arm() { armed_.store(true, std::memory_order_relaxed); }
    // The same for who calls sleep(); any number of threads may, at once.
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
    // Wakes who sleeps, or is about to, so that it looks around again; the second only if somebody is, and
    // with the lock held. Of several only one need wake: who does and leaves something for others wakes
    // again.
    int wake_now();
    void wake() {
        if (armed() && !woken_.exchange(true)) wake_now();
    }
    // The same, and has a blocking read end: take_signal() says so, once. Works without descriptors too.
    int signal();
    bool take_signal() { return signalled_.exchange(false, std::memory_order_acquire); }
    bool has_signal() const { return signalled_.load(std::memory_order_acquire); }
    // Forgets earlier wakes, of all that sleep; who calls it looks around afterwards, whatever it does then.
    void reset();
    // Until something is readable or the time is over; 0, or -FI_E* when interrupted.
    int sleep(int timeout_ms);

  private:
    FileDescriptor poll_set_, signal_;
    int inner_ = -1;
    std::atomic<bool> signalled_{false}, armed_{false}, woken_{false};
    std::atomic<unsigned> sleepers_{0};
};

}  // namespace mcastcoll::ofi
