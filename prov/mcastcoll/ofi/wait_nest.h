// A descriptor that polls readable when any of several others does: the inner queue's and every station's.
// This is what FI_GETWAIT hands out and what our own blocking reads sleep on.
#pragma once

#include <atomic>

#include "transport/file_descriptor.h"

namespace mcastcoll::ofi {

class WaitNest {
  public:
    // The inner queue's, or -1 when there is none. False: the system has no descriptors left.
    bool open(int inner_descriptor);
    bool is_open() const { return poll_set_.valid(); }
    int descriptor() const { return poll_set_.get(); }
    // The inner queue's descriptor polls readable.
    bool inner_readable() const;

    void add(int descriptor);
    void remove(int descriptor);

    // Who is about to sleep says so before it looks around for the last time; calm() and the end of sleep()
    // take that back. With everything that it looks at under one lock, it sees what there is or is woken.
    void arm() { armed_.store(true, std::memory_order_relaxed); }
    bool armed() const { return armed_.load(std::memory_order_relaxed); }
    // Wakes who sleeps, or is about to, so that it looks around again; the second only if somebody is.
    int stir();
    void wake() {
        if (armed() && armed_.exchange(false, std::memory_order_relaxed)) stir();
    }
    // The same, and has the blocking read end: take_signal() says so, once. Works without descriptors too.
    int signal();
    bool take_signal() { return signalled_.exchange(false, std::memory_order_acquire); }
    // Forgets earlier wakes; before looking around, after which sleep() may follow.
    void calm();
    // Until something is readable or the time is over; 0, or -FI_E* when interrupted.
    int sleep(int timeout_ms);

  private:
    FileDescriptor poll_set_, signal_;
    int inner_ = -1;
    std::atomic<bool> signalled_{false}, armed_{false};
};

}  // namespace mcastcoll::ofi
