// A counter of completed operations of datagram endpoints.
#pragma once

#include <rdma/fi_eq.h>

#include "datagram/object.h"
#include "datagram/waiter.h"

namespace mcastcoll::ofi::datagram {

class Domain;

class Counter : public Object<Counter, fid_cntr, FI_CLASS_CNTR, Domain> {
  public:
    static int open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);

    // With the domain's lock held.
    void count(bool failed);

    Waiter& waiter() { return waiter_; }
    WaitObject& wait_object() { return waiter_.wait_object(); }
    void prepare_wait();

  private:
    explicit Counter(Domain& domain);
    static std::uint64_t read(fid_cntr* counter) noexcept;
    static std::uint64_t readerr(fid_cntr* counter) noexcept;
    template <std::uint64_t Counter::*Value, bool Add>
    static int change(fid_cntr* counter, std::uint64_t value) noexcept;
    static int wait(fid_cntr* counter, std::uint64_t threshold, int timeout) noexcept;

    Waiter waiter_;
    std::uint64_t done_ = 0, failed_ = 0;
};

}  // namespace mcastcoll::ofi::datagram
