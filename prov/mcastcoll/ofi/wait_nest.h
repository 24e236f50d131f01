// A descriptor that polls readable when any of several others does: the inner queue's and every station's.
// This is what FI_GETWAIT hands out and what our own blocking reads sleep on.
#pragma once

#include <atomic>

#include "transport/file_descriptor.h"

namespace mcastcoll::ofi {

class WaitNest {
  public:
    // False: the system has no descriptors left.
    bool open(int inner_descriptor);
    bool is_open() const { return poll_set_.valid(); }
    int descriptor() const { return poll_set_.get(); }
    // The inner queue's descriptor polls readable.
    bool inner_readable() const;

    void add(int descriptor);
    void remove(int descriptor);

    // Wakes who sleeps, or is about to, so that it looks around again.
    int stir();
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
    std::atomic<bool> signalled_{false};
};

}  // namespace mcastcoll::ofi
