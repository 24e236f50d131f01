// A counter of datagram endpoints.
#pragma once

#include <rdma/fi_eq.h>

#include "datagram/domain.h"
#include "datagram/waiter.h"

namespace mcastcoll::datagram {

class Counter : public Object<Counter, fid_cntr, FI_CLASS_CNTR, Domain>, public Waiter {
  public:
    static int open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);
    Counter(Domain& domain, void* context)
        : Object(domain.shared_from_this(), context), Waiter(domain.mutex) {}

    // The domain's lock must be held.
    void count(bool failed);

  private:
    std::uint64_t read();
    std::uint64_t readerr();
    template <std::uint64_t Counter::*Value, bool Add>
    int change(std::uint64_t value);
    int wait(std::uint64_t threshold, int timeout);

    std::uint64_t done_ = 0, failed_ = 0;
};

}  // namespace mcastcoll::datagram
