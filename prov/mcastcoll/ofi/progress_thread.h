// The progress thread for FI_PROGRESS_AUTO, when applications compute without calling libfabric. One thread
// serves all collective endpoints of a fabric, from the first join of an endpoint with automatic progress
// until the last such endpoint closes. Like a blocking read of a queue, the thread sleeps on a wait object
// with the descriptors of the collective endpoints, which include their timers. The thread holds the fabric's
// lock only while it makes progress. Shared memory cannot wake a sleeping thread: while operations wait for
// other processes of this host, the timer fires after a quarter of the time spent without news, at least 20
// us and at most 1 ms (host::Team).
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/result.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

class Fabric;

class ProgressThread {
  public:
    static Result<std::shared_ptr<ProgressThread>> start(Fabric& fabric);
    // The fabric's lock must not be held.
    ~ProgressThread();
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

  private:
    explicit ProgressThread(Fabric& fabric) : fabric_(fabric) {}
    void work();

    Fabric& fabric_;
    provider::WaitObject wait_object_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace mcastcoll::ofi
