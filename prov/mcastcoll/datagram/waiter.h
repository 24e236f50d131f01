// Who may want to sleep until endpoints have received something: a completion queue, a counter. It knows the
// endpoints that complete to it, has them take what their sockets hold, and sleeps on their sockets.
//
// Everything but sleeping happens under the domain's lock.
#pragma once

#include <rdma/fi_errno.h>

#include <mutex>
#include <vector>

#include "base/clock.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi::datagram {

class Endpoint;

class Waiter {
  public:
    explicit Waiter(std::mutex& mutex) : mutex_(mutex) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    WaitObject& wait_object() { return wait_object_; }

    void add(Endpoint& endpoint);
    void remove(Endpoint& endpoint);
    // All endpoints take what has come.
    void progress();

    // Before somebody sleeps on the descriptor. An endpoint without posted receives takes nothing, so its
    // sockets must not wake anybody.
    void prepare();

    // `ready` is called under the lock and says -FI_EAGAIN as long as there is nothing.
    template <typename Ready>
    ssize_t wait(int timeout, Ready ready) {
        if (!wait_object_.is_open()) return -FI_ENOSYS;
        const Deadline deadline(timeout);
        {
            // What is there already costs no look at the sockets.
            const std::lock_guard lock(mutex_);
            if (const ssize_t got = ready(); got != -FI_EAGAIN) return got;
        }
        for (;;) {
            {
                const std::lock_guard lock(mutex_);
                prepare();
                const ssize_t got = ready();
                if (got != -FI_EAGAIN || deadline.over() || wait_object_.take_signal()) return got;
            }
            if (const int rc = wait_object_.sleep(deadline.left_ms()); rc != 0) return rc;
        }
    }

  private:
    std::mutex& mutex_;
    WaitObject wait_object_;
    std::vector<Endpoint*> endpoints_;
};

}  // namespace mcastcoll::ofi::datagram
