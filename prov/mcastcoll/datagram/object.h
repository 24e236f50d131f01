// What all libfabric objects of this folder have in common. Each derives from libfabric's own structure, so
// that a fid_* of the application is the object; each counts who uses it, and is not closed under them.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <cstring>

#include "provider/guard.h"
#include "provider/wait_nest.h"

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

// Ends an object that nobody uses; `below` counts the users of what it was opened in.
template <typename Object>
int close_unused(Object& object, Users& below) {
    return guard([&] {
        if (object.users.any()) return -FI_EBUSY;
        below.leave();
        delete &object;
        return 0;
    });
}

// Opens what an attribute asks to sleep on, and says in it which that is: descriptors are all there are.
inline int open_wait(WaitNest& nest, fi_wait_obj& wanted) {
    if (wanted == FI_WAIT_NONE) return 0;
    if (wanted != FI_WAIT_UNSPEC && wanted != FI_WAIT_FD) return -FI_ENOSYS;
    if (!nest.open(-1)) return -FI_EMFILE;
    wanted = FI_WAIT_FD;
    return 0;
}

// What fi_cq_strerror() and fi_eq_strerror() say: our own codes are libfabric's.
inline const char* describe_error(int error, char* buffer, std::size_t length) {
    const char* text = fi_strerror(error);
    if (buffer != nullptr && length > 0) {
        std::strncpy(buffer, text, length - 1);
        buffer[length - 1] = '\0';
    }
    return text;
}

}  // namespace mcastcoll::ofi::datagram
