// Sleeping until an endpoint has received data.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <mutex>
#include <vector>

#include "base/deadline.h"
#include "datagram/source.h"
#include "provider/wait_object.h"

namespace mcastcoll::datagram {

// Opens the wait object that an attribute requests and stores its kind in the attribute. Only descriptors are
// supported.
int open_wait(provider::WaitObject& object, fi_wait_obj& wanted);

// An object on which a thread may sleep until endpoints have received data: a completion queue or a counter.
// A Waiter makes its sources receive, and sleeps on the sources' sockets. All calls except sleeping need the
// domain's lock.
class Waiter {
  public:
    explicit Waiter(std::mutex& mutex) : mutex_(mutex) {}

    provider::WaitObject& wait_object() { return wait_object_; }
    bool add(Source& source);  // false: already added
    void remove(Source& source) { std::erase(sources_, &source); }
    // Called before a thread sleeps on the descriptor, without the lock.
    void prepare_wait();

  protected:
    // Makes all sources take newly arrived data.
    void progress();
    // Sleeps until ready() no longer returns -FI_EAGAIN; ready() is called with the lock held. Calls ready()
    // again after `rest_ms` at the latest, unless that is negative.
    template <typename Ready>
    ssize_t sleep_until(int timeout, int rest_ms, Ready ready);

  private:
    // Makes the sources take arrived data, and start or stop watching their sockets: an endpoint without
    // posted receives takes nothing, so its sockets must not wake any thread.
    void prepare();

    std::mutex& mutex_;
    provider::WaitObject wait_object_;
    std::vector<Source*> sources_;
};

template <typename Ready>
ssize_t Waiter::sleep_until(int timeout, int rest_ms, Ready ready) {
    if (!wait_object_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    {
        // Entries that are there already need no system call on the sockets.
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
        // A negative value means no limit.
        const int left = deadline.left_ms();
        const bool rests = rest_ms >= 0 && (left < 0 || left > rest_ms);
        if (const int rc = wait_object_.sleep(rests ? rest_ms : left); rc != 0) return rc;
    }
}

}  // namespace mcastcoll::datagram
