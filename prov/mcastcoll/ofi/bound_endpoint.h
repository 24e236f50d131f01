// An endpoint as its groups need it: the inner one, and what the application bound to it.
//
// Reads of a queue move all stations of the queue's fabric, so that queues and the fabric stand above
// stations and their groups, which get of them what is here.
#pragma once

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <vector>

#include "base/fork.h"
#include "provider/completions.h"
#include "provider/owners.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

// Completions of collectives, in the queue that reads them. Room for one is made when its operation is
// submitted, so that completing can neither fail nor allocate. All but any() with the fabric's lock held.
class CollectiveCompletions final : public Completions {
  public:
    // `sleepers`: who waits for completions.
    CollectiveCompletions(fi_cq_format format, WaitObject& sleepers)
        : Completions(format, 0), sleepers_(sleepers) {}

    // False: too much is under way.
    bool reserve() {
        const std::size_t needed = size() + reserved_ + 1;
        if (needed > kMost) return false;
        if (needed > capacity()) grow(std::max(kFirst, 2 * capacity()));
        ++reserved_;
        return true;
    }
    void release() { --reserved_; }
    // Uses up a reservation; error is 0 or a positive FI_E* code.
    void complete(void* op_context, int error) {
        assert(reserved_ > 0);
        --reserved_;
        push({.op_context = op_context, .flags = FI_COLLECTIVE, .error = error});
        // Another thread may sleep, and the one that did the work left nothing that its descriptors would
        // tell of.
        sleepers_.wake();
    }

  private:
    static constexpr std::size_t kFirst = 64, kMost = 65536;

    WaitObject& sleepers_;
    std::size_t reserved_ = 0;
};

struct BoundEndpoint {
    std::mutex& mutex;                             // the fabric's; all calls of a station need it
    const std::vector<WaitObject*>& wait_objects;  // of all who may sleep until a station has something
    const InfoOwner info;                          // as the inner provider knows it
    fid_ep* inner = nullptr;
    fid_av* av = nullptr;
    fid_eq* eq = nullptr;
    CollectiveCompletions* tx = nullptr;
    bool selective = false;  // completions of success only when asked for
    const OwnProcess process{};

    std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex); }
    // Some thread sleeps until a descriptor wakes it, or is about to.
    bool somebody_sleeps() const { return std::ranges::any_of(wait_objects, &WaitObject::armed); }
};

}  // namespace mcastcoll::ofi
