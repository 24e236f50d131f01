// Our share of an open fabric: the one lock of the libfabric face, and the stations that reads of any queue
// drive.
//
// The inner provider's fid_fabric is the application's; this object hangs on its grafted tables and goes with
// its close.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ofi/graft.h"

namespace mcastcoll::ofi {

class ProgressThread;
class Station;
class WaitObject;

class Fabric {
  public:
    // Takes hold of an inner fabric; 0 or -FI_E*, in which case the fabric has been closed.
    static int graft(fid_fabric& inner);
    static Fabric& of(fid_fabric& fabric) { return Graft<fi_ops_fabric>::owner_of<Fabric>(fabric.ops); }

    explicit Fabric(fid_fabric& inner);
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    std::mutex& mutex() { return mutex_; }
    std::uint32_t api_version() const { return inner_.api_version; }

    // No station, no cost: reads look at nothing but this.
    bool active() const { return active_.load(std::memory_order_relaxed); }
    // What a read does for collectives. A busy station moves every time, an idle one only now and then,
    // because looking after its sockets costs system calls.
    void progress_on_read();
    // Before sleeping on a descriptor: moves everything. False: something is pending, do not sleep.
    bool prepare_wait();
    // Whether this queue's owner may sleep as far as the inner provider is concerned: 0, -FI_EAGAIN or
    // another -FI_E*.
    int inner_trywait(fid& object);

    // All with the lock held.
    int add_station(Station& station);  // 0, or -FI_E*: nobody would be woken for it
    void remove_station(Station& station);
    // Some thread sleeps until a descriptor wakes it, or is about to.
    bool somebody_sleeps() const;

    // Without the lock, which the thread needs: for every endpoint whose station is to move by itself, from
    // its first join to its closing. 0 or -FI_E*.
    int begin_automatic();
    void end_automatic();

    // Who has to wake for stations. These take the lock.
    int add_wait_object(WaitObject& object);  // 0 or -FI_E*
    void remove_wait_object(WaitObject& object);

  private:
    static int close(fid* object) noexcept;
    static int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept;
    static int open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                            void* context) noexcept;
    template <typename Open>
    int open_any_domain(fi_info* info, fid_domain** domain, Open open);
    static int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept;
    static int trywait(fid_fabric* fabric, fid** objects, int count) noexcept;

    fid_fabric& inner_;
    Graft<fi_ops> object_graft_;
    Graft<fi_ops_fabric> fabric_graft_;

    std::mutex mutex_;
    std::atomic<bool> active_{false};
    unsigned reads_ = 0;
    std::uint64_t tick_ = 0;  // of the coarse clock, when all stations moved last
    std::vector<Station*> stations_;
    std::vector<WaitObject*> wait_objects_;

    std::mutex automatic_mutex_;
    unsigned automatic_ = 0;  // endpoints
    std::unique_ptr<ProgressThread> thread_;
};

}  // namespace mcastcoll::ofi
