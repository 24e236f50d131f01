// Our shares of an open fabric and its domains.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "ofi/graft.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

class Fabric;
class Station;

// Progress for applications that compute without calling in, FI_PROGRESS_AUTO: one thread for all stations of
// a fabric, from the first join of an endpoint that asked for it to the closing of the last. It sleeps as any
// blocking read of a queue does, on a wait object with the stations' descriptors, which has their timers in
// it, and holds the fabric's lock only while it moves something. Shared memory wakes nobody: while operations
// wait for other processes of this host the timer rings after a quarter of the time that nothing came, 20 us
// at least and 1 ms at most (host::Team).
class ProgressThread {
  public:
    static Result<std::shared_ptr<ProgressThread>> start(Fabric& fabric);
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

// The one lock of the libfabric face, and the stations that reads of any queue drive.
class Fabric final : public Grafted<Fabric, fid_fabric, fi_ops_fabric> {
  public:
    // If anything is thrown the inner fabric has been closed.
    static void graft(fid_fabric& inner);
    explicit Fabric(fid_fabric& inner) : Grafted(inner) {}

    std::mutex& mutex() { return mutex_; }
    std::uint32_t api_version() const { return inner_.api_version; }

    // No station, no cost: reads look at nothing but this.
    bool active() const { return active_.load(std::memory_order_relaxed); }
    // False in a child of fork(): the stations belong to the parent.
    bool is_here() const { return process_.is_here(); }
    // What a read does for collectives. A busy station moves every time, an idle one only now and then,
    // because looking after its sockets costs system calls.
    void progress_on_read();
    // Before sleeping on a descriptor: moves everything. False: something is pending, do not sleep.
    bool prepare_wait();
    // What the inner provider says to fi_trywait().
    int inner_trywait(fid& object);

    // All with the lock held.
    int add_station(Station& station);  // 0, or -FI_E*: nobody would be woken for it
    void remove_station(Station& station);

    // For every endpoint whose station is to move by itself. Call it, and let go of it, without the lock,
    // which the thread needs.
    Result<std::shared_ptr<ProgressThread>> progress_thread();

    // Who has to wake for stations. These take the lock.
    int add_wait_object(WaitObject& object);  // 0 or -FI_E*
    void remove_wait_object(WaitObject& object);
    const std::vector<WaitObject*>& wait_objects() const { return wait_objects_; }  // look with the lock held

  private:
    const OwnProcess process_;
    std::mutex mutex_;
    std::atomic<bool> active_{false};
    unsigned reads_ = 0;
    std::uint64_t tick_ = 0;  // of the coarse clock, when all stations moved last
    std::vector<Station*> stations_;
    std::vector<WaitObject*> wait_objects_;

    std::mutex thread_mutex_;
    std::weak_ptr<ProgressThread> thread_;
};

// It hands out grafted endpoints, queues and address vectors (fabric_open.cc) when the application asked for
// FI_COLLECTIVE; otherwise it only translates infos and everything is purely the inner provider's.
class Domain final : public Grafted<Domain, fid_domain, fi_ops_domain> {
  public:
    // If anything is thrown the inner domain has been closed.
    static void graft(Fabric& fabric, fid_domain& inner, const fi_info& info);
    Domain(Fabric& fabric, fid_domain& inner) : Grafted(inner), fabric_(fabric) {}

    Fabric& fabric() { return fabric_; }
    // The application asked for FI_PROGRESS_AUTO.
    bool is_automatic() const { return automatic_; }

  private:
    static int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                             void* context) noexcept;

    Fabric& fabric_;
    bool collective_ = false, automatic_ = false;
};

}  // namespace mcastcoll::ofi
