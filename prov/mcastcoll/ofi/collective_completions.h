// Completions of collectives, kept in the completion queue where the application reads them. Space for a
// completion is reserved when its operation is submitted, so complete() cannot fail or allocate memory. All
// calls except any() need the fabric's lock.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "provider/completions.h"
#include "provider/wait_object.h"

namespace mcastcoll::ofi {

class CollectiveCompletions final : public provider::Completions {
  public:
    // `sleepers`: wakes the threads that wait for completions.
    CollectiveCompletions(fi_cq_format format, provider::WaitObject& sleepers)
        : provider::Completions(format, 0), sleepers_(sleepers) {}

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

    provider::WaitObject& sleepers_;
    std::size_t reserved_ = 0;
};

}  // namespace mcastcoll::ofi
