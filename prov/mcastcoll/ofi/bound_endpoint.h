// The part of an endpoint that groups use: the inner endpoint and the objects bound to it.
//
// A read of a queue drives progress on all collective endpoints of the queue's fabric. Queues and the fabric
// therefore depend on collective endpoints and groups, which in turn see only this structure.
#pragma once

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cassert>
#include <mutex>
#include <vector>

#include "base/own_process.h"
#include "provider/completions.h"
#include "provider/owners.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

// Completions of collectives, kept in the completion queue where the application reads them. Space for a
// completion is reserved when its operation is submitted, so complete() cannot fail or allocate memory. All
// calls except any() need the fabric's lock.
class CollectiveCompletions final : public Completions {
  public:
    // `sleepers`: wakes the threads that wait for completions.
    CollectiveCompletions(fi_cq_format format, WaitObject& sleepers)
        : Completions(format, 0), sleepers_(sleepers) {}

    // Returns false if too many operations are in progress.
    bool reserve() {
        const std::size_t needed = size() + reserved_ + 1;
        if (needed > kMax) return false;
        if (needed > capacity()) grow(std::max(kFirst, 2 * capacity()));
        ++reserved_;
        return true;
    }
    void release() { --reserved_; }
    // Uses one reservation; error is 0 or a positive FI_E* code.
    void complete(void* op_context, int error) {
        assert(reserved_ > 0);
        --reserved_;
        push({.op_context = op_context, .flags = FI_COLLECTIVE, .error = error});
        // Another thread may be asleep, and the completing thread has already drained the descriptors meant
        // to wake the sleeper.
        sleepers_.wake();
    }

  private:
    static constexpr std::size_t kFirst = 64, kMax = 65536;

    WaitObject& sleepers_;
    std::size_t reserved_ = 0;
};

struct BoundEndpoint {
    std::mutex& mutex;  // the fabric's lock, held in all calls of a collective endpoint
    // Wait objects of all threads sleeping until a collective endpoint has work.
    const std::vector<WaitObject*>& wait_objects;
    const InfoOwner info;  // in the inner provider's form
    fid_ep* inner = nullptr;
    fid_av* av = nullptr;
    fid_eq* eq = nullptr;
    CollectiveCompletions* tx = nullptr;
    bool selective = false;  // successful completions only on request
    const OwnProcess process{};

    std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex); }
    // True while a thread sleeps until a descriptor wakes it, or is about to.
    bool has_sleepers() const { return std::ranges::any_of(wait_objects, &WaitObject::armed); }
};

}  // namespace mcastcoll::ofi
