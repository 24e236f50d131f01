// The provider's parts of an open fabric and its domains.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/own_process.h"
#include "ofi/graft.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

class Fabric;
class CollectiveEndpoint;

// The progress thread for FI_PROGRESS_AUTO, when applications compute without calling libfabric. One thread
// serves all collective endpoints of a fabric, from the first join of an endpoint with automatic progress
// until the last such endpoint closes. Like a blocking read of a queue, the thread sleeps on a wait object
// with the descriptors of the collective endpoints, which include their timers. The thread holds the fabric's
// lock only while it makes progress. Shared memory cannot wake a sleeping thread: while operations wait for
// other processes of this host, the timer fires after a quarter of the time spent without news, at least 20
// us and at most 1 ms (host::Team).
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
    WaitObject wait_object_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

// An open fabric. Holds the lock for all objects of ofi/ and the list of collective endpoints, which reads of
// any queue drive.
class Fabric final : public Grafted<Fabric, fid_fabric, fi_ops_fabric> {
  public:
    // Closes the inner fabric if an exception is thrown.
    static void graft(fid_fabric& inner);
    explicit Fabric(fid_fabric& inner) : Grafted(inner) {}

    std::mutex& mutex() { return mutex_; }
    std::uint32_t api_version() const { return inner_.api_version; }

    // False without collective endpoints. Reads then check only this flag.
    bool active() const { return active_.load(std::memory_order_relaxed); }
    // False in a child of fork(): the collective endpoints belong to the parent.
    bool is_here() const { return process_.is_here(); }
    // Makes progress on collectives during a read. A busy collective endpoint is driven at every read. An
    // idle one is driven only occasionally, because reading its sockets costs system calls.
    void progress_on_read();
    // Drives all collective endpoints before the caller sleeps on a descriptor. Returns false if work is
    // pending: the caller must not sleep.
    bool prepare_wait();
    // The inner provider's answer to fi_trywait().
    int inner_trywait(fid& object);

    // The lock must be held for add_collective_endpoint() and remove_collective_endpoint(). Returns 0, or
    // -FI_E* if the descriptor of the CollectiveEndpoint cannot be added to the wait objects.
    int add_collective_endpoint(CollectiveEndpoint& collective_endpoint);
    void remove_collective_endpoint(CollectiveEndpoint& collective_endpoint);

    // The progress thread, for every endpoint with FI_PROGRESS_AUTO. Call this function and release the
    // result without holding the lock, because the thread needs the lock.
    Result<std::shared_ptr<ProgressThread>> progress_thread();

    // Wait objects to wake for the collective endpoints. These functions take the lock.
    int add_wait_object(WaitObject& object);  // 0 or -FI_E*
    void remove_wait_object(WaitObject& object);
    // Read with the lock held.
    const std::vector<WaitObject*>& wait_objects() const { return wait_objects_; }

  private:
    const OwnProcess process_;
    std::mutex mutex_;
    std::atomic<bool> active_{false};
    unsigned reads_ = 0;
    // Coarse clock when all collective endpoints were last driven.
    std::uint64_t tick_ = 0;
    std::vector<CollectiveEndpoint*> collective_endpoints_;
    std::vector<WaitObject*> wait_objects_;

    std::mutex thread_mutex_;
    std::weak_ptr<ProgressThread> thread_;
};

// Opens grafted endpoints, queues and address vectors (fabric_open.cc) if the application requested
// FI_COLLECTIVE. Otherwise a Domain only translates infos, and all objects are the inner provider's own.
class Domain final : public Grafted<Domain, fid_domain, fi_ops_domain> {
  public:
    // Closes the inner domain if an exception is thrown.
    static void graft(Fabric& fabric, fid_domain& inner, const fi_info& info);
    Domain(Fabric& fabric, fid_domain& inner) : Grafted(inner), fabric_(fabric) {}

    Fabric& fabric() { return fabric_; }
    // True if the application requested FI_PROGRESS_AUTO.
    bool is_automatic() const { return automatic_; }

  private:
    static int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                             void* context) noexcept;

    Fabric& fabric_;
    bool collective_ = false, automatic_ = false;
};

}  // namespace mcastcoll::ofi
