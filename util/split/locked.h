// One lock guards the state, also for the thread that sends prefaces. Signals are blocked while the lock is
// held, so that a signal handler that writes cannot wait for a lock of its own thread.
// Defined in ledger.cc, with the state.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace mcastcoll::split {

class Locked {
  public:
    Locked() noexcept;
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    sigset_t before_;
};

}  // namespace mcastcoll::split
