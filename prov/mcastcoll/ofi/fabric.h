// The provider's part of an open fabric.
#pragma once

#include <mutex>
#include <vector>

#include "base/own_process.h"
#include "ofi/grafted.h"
#include "ofi/progress_thread.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

class Fabric;
class CollectiveEndpoint;

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

    // The lock must be held. Returns 0, or -FI_E* if the descriptor of the CollectiveEndpoint cannot be added
    // to the wait objects.
    int add_collective_endpoint(CollectiveEndpoint& collective_endpoint);
    // The lock must be held.
    void remove_collective_endpoint(CollectiveEndpoint& collective_endpoint);

    // Returns the progress thread that all endpoints with FI_PROGRESS_AUTO share. Call this function and
    // release the result without holding the lock, because the thread needs the lock.
    Result<std::shared_ptr<ProgressThread>> progress_thread();

    // Adds a wait object that the collective endpoints wake. Takes the lock. Returns 0 or -FI_E*.
    int add_wait_object(provider::WaitObject& object);
    // Takes the lock.
    void remove_wait_object(provider::WaitObject& object);
    // Call with the lock held.
    const std::vector<provider::WaitObject*>& wait_objects() const { return wait_objects_; }

  private:
    const OwnProcess process_;
    std::mutex mutex_;
    std::atomic<bool> active_{false};
    unsigned reads_ = 0;
    // Coarse clock when all collective endpoints were last driven.
    std::uint64_t tick_ = 0;
    std::vector<CollectiveEndpoint*> collective_endpoints_;
    std::vector<provider::WaitObject*> wait_objects_;

    std::mutex thread_mutex_;
    std::weak_ptr<ProgressThread> thread_;
};

}  // namespace mcastcoll::ofi
