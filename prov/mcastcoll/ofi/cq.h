// Our share of a completion queue: completions of collectives, which reads return before the inner
// provider's.
//
// As with libfabric's own software collectives, a collective completes to the queue bound with FI_TRANSMIT.
// Room for its completion is made when it is submitted, so that completing can neither fail nor allocate.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "ofi/queue.h"
#include "provider/completions.h"

namespace mcastcoll::ofi {

class Cq : public Queue<Cq, fid_cq, fi_ops_cq, FI_CLASS_CQ> {
  public:
    static int open(Fabric& fabric, const fi_ops_domain& inner_ops, fid_domain& domain, fi_cq_attr* attr,
                    fid_cq** cq, void* context);
    Cq(Fabric& fabric, fid_cq& inner, fi_cq_format format) : Queue(fabric, inner), own_(format, 0) {}

    // Lets the inner queue clear its descriptor; true when it has something to read.
    bool inner_pending();
    bool has_own() const { return own_.any(); }

    // All with the fabric's lock held. False: too much is under way.
    bool reserve();
    void release() { --reserved_; }
    // These use up a reservation.
    void push(void* op_context, std::uint64_t flags, std::size_t length, void* buffer);
    void push_error(void* op_context, std::uint64_t flags, int error);

  private:
    static ssize_t read(fid_cq* cq, void* buffer, std::size_t count) noexcept;
    static ssize_t readfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source) noexcept;
    static ssize_t readerr(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t flags) noexcept;
    static ssize_t sread(fid_cq* cq, void* buffer, std::size_t count, const void* condition,
                         int timeout) noexcept;
    static ssize_t sreadfrom(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* source,
                             const void* condition, int timeout) noexcept;
    static int signal(fid_cq* cq) noexcept;

    template <typename Inner>
    ssize_t read_all(void* buffer, std::size_t count, fi_addr_t* source, Inner inner);
    void push(const Completion& completion);
    // What there is of our own: a count, -FI_EAVAIL, or -FI_EAGAIN.
    ssize_t read_own(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t read_blocking(void* buffer, std::size_t count, fi_addr_t* source, int timeout);

    bool yields_ = false;  // blocking reads turn round instead of sleeping, as the inner provider's do
    Completions own_;
    std::size_t reserved_ = 0;
};

}  // namespace mcastcoll::ofi
