// Progress for applications that compute without calling in: FI_PROGRESS_AUTO.
//
// One thread for all stations of a fabric. It sleeps as any blocking read of a queue does, on a wait object
// with the stations' descriptors, which has their timers in it, and holds the fabric's lock only while it
// moves something. Shared memory wakes nobody: while operations wait for other processes of this host the
// timer rings after a quarter of the time that nothing came, 20 us at least and 1 ms at most (host::Team).
//
// It belongs to the fabric, lives from the first join of an endpoint that asked for it to the closing of the
// last, and is joined there.
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
    static Result<std::unique_ptr<ProgressThread>> start(Fabric& fabric);
    // Without the fabric's lock.
    ~ProgressThread();
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

  private:
    explicit ProgressThread(Fabric& fabric) : fabric_(fabric) {}
    void work();

    Fabric& fabric_;
    WaitObject wait_object_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace mcastcoll::ofi
