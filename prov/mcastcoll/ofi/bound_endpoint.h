// The part of an endpoint that groups use: the inner endpoint and the objects bound to it.
//
// A read of a queue drives progress on all collective endpoints of the queue's fabric. Queues and the fabric
// therefore depend on collective endpoints and groups, which in turn see only this structure.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/own_process.h"
#include "ofi/collective_completions.h"
#include "provider/info_owner.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

struct BoundEndpoint {
    std::mutex& mutex;  // the fabric's lock, held in all calls of a collective endpoint
    // Wait objects of all threads sleeping until a collective endpoint has work.
    const std::vector<provider::WaitObject*>& wait_objects;
    const provider::InfoOwner info;  // in the inner provider's form
    fid_ep* inner = nullptr;
    fid_av* av = nullptr;
    fid_eq* eq = nullptr;
    CollectiveCompletions* tx = nullptr;
    bool selective = false;  // successful completions only on request
    const OwnProcess process{};

    std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex); }
    // True while a thread sleeps until a descriptor wakes it, or is about to.
    bool has_sleepers() const { return std::ranges::any_of(wait_objects, &provider::WaitObject::armed); }
};

}  // namespace mcastcoll::ofi
