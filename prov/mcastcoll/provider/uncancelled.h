// Delays the cancellation of the thread (pthread_cancel) until the end of the scope. glibc cancels by
// unwinding, which would call std::terminate() at a noexcept function and leave groups in an inconsistent
// state.
#pragma once

#include <pthread.h>

#include <exception>

namespace mcastcoll::provider {

class Uncancelled {
  public:
    Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace mcastcoll::provider
