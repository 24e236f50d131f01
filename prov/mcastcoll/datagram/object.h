// What all libfabric objects of this folder have in common. Each derives from libfabric's own structure, so
// that a fid_* of the application is the object; each counts who uses it, and is not closed under them.
#pragma once

#include <rdma/fabric.h>

#include <atomic>

namespace mcastcoll::ofi::datagram {

// libfabric's `fid`, by a name that the member of that name does not hide.
using Handle = ::fid;

// From the `fid` that libfabric's structures begin with to the object.
template <typename Object, typename Structure>
Object& object_of(Handle* object) {
    return static_cast<Object&>(*reinterpret_cast<Structure*>(object));
}

class Users {
  public:
    void enter() { count_.fetch_add(1, std::memory_order_relaxed); }
    void leave() { count_.fetch_sub(1, std::memory_order_acq_rel); }
    bool any() const { return count_.load(std::memory_order_acquire) > 0; }

  private:
    std::atomic<unsigned> count_{0};
};

}  // namespace mcastcoll::ofi::datagram
