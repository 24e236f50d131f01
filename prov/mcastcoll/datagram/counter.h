// A counter of completed operations of datagram endpoints.
#pragma once

#include <rdma/fi_eq.h>

#include "datagram/object.h"
#include "datagram/waiter.h"

namespace mcastcoll::ofi::datagram {

class Domain;

class Counter : public fid_cntr {
  public:
    static int open(Domain& domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);
    // Null when the object is no counter of ours.
    static Counter* find(Handle& object);

    // With the domain's lock held.
    void count(bool failed);

    Domain& domain() const { return domain_; }
    Waiter& waiter() { return waiter_; }
    void prepare_wait();
    Users users;

  private:
    explicit Counter(Domain& domain);
    static Counter& of(fid_cntr& counter) { return static_cast<Counter&>(counter); }
    static int close(Handle* object) noexcept;
    static int control(Handle* object, int command, void* argument) noexcept;
    static std::uint64_t read(fid_cntr* counter) noexcept;
    static std::uint64_t readerr(fid_cntr* counter) noexcept;
    template <std::uint64_t Counter::*Value, bool Add>
    static int change(fid_cntr* counter, std::uint64_t value) noexcept;
    static int wait(fid_cntr* counter, std::uint64_t threshold, int timeout) noexcept;

    Domain& domain_;
    Waiter waiter_;
    std::uint64_t done_ = 0, failed_ = 0;
};

}  // namespace mcastcoll::ofi::datagram
