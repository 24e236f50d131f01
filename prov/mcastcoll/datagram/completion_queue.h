// A completion queue with the requested number of entries, which never overruns. While the queue is full,
// sends return -FI_EAGAIN, and received messages stay in the kernel's buffers.
#pragma once

#include <rdma/fi_eq.h>

#include "datagram/domain.h"
#include "datagram/waiter.h"
#include "provider/completions.h"

namespace mcastcoll::datagram {

class CompletionQueue : public Object<CompletionQueue, fid_cq, FI_CLASS_CQ, Domain>, public Waiter {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);
    CompletionQueue(Domain& domain, std::size_t size, fi_cq_format format, void* context)
        : Object(domain.shared_from_this(), context), Waiter(domain.mutex), completions_(format, size) {}

    bool pending() const { return completions_.any(); }
    // The domain's lock must be held.
    std::size_t room() const { return completions_.capacity() - completions_.size(); }
    void push(const provider::Completion& completion);

  private:
    ssize_t read(void* buffer, std::size_t count) { return readfrom(buffer, count, nullptr); }
    ssize_t readfrom(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t readerr(fi_cq_err_entry* entry, std::uint64_t flags);
    ssize_t sread(void* buffer, std::size_t count, const void* condition, int timeout);
    ssize_t sreadfrom(void* buffer, std::size_t count, fi_addr_t* source, const void* condition, int timeout);
    int signal() { return wait_object().signal(); }
    ssize_t take(void* buffer, std::size_t count, fi_addr_t* source);

    provider::Completions completions_;
};

}  // namespace mcastcoll::datagram
