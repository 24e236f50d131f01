// The completion queue of datagram endpoints. It has as many places as were asked for, and never runs over:
// who would complete to a full one waits, in the kernel's buffers if it is a message.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>

#include "datagram/object.h"
#include "datagram/waiter.h"
#include "provider/completions.h"

namespace mcastcoll::ofi::datagram {

class Domain;

class CompletionQueue : public Object<CompletionQueue, fid_cq, FI_CLASS_CQ, Domain> {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);

    // All with the domain's lock held.
    std::size_t room() const { return completions_.capacity() - completions_.size(); }
    void push(const Completion& completion);

    Waiter& waiter() { return waiter_; }
    WaitObject& wait_object() { return waiter_.wait_object(); }
    // For fi_trywait(). True: there is something to read.
    bool prepare_wait();

  private:
    CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format);
    static ssize_t read(fid_cq* cq, void* buffer, std::size_t count) noexcept;
    static ssize_t readfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source) noexcept;
    static ssize_t readerr(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t flags) noexcept;
    static ssize_t sread(fid_cq* cq, void* buffer, std::size_t count, const void* condition,
                         int timeout) noexcept;
    static ssize_t sreadfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source,
                             const void* condition, int timeout) noexcept;
    static int signal(fid_cq* cq) noexcept;

    ssize_t take(void* buffer, std::size_t count, fi_addr_t* source);

    Waiter waiter_;
    Completions completions_;
};

}  // namespace mcastcoll::ofi::datagram
