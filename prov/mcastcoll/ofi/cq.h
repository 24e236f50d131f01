// The provider's part of a completion queue. Reads return completions of collectives before the inner
// provider's completions.
//
// As with libfabric's own software collectives, a collective completes to the queue bound with FI_TRANSMIT.
#pragma once

#include <rdma/fi_eq.h>

#include "ofi/collective_completions.h"
#include "ofi/domain.h"
#include "ofi/fabric.h"
#include "ofi/queue.h"

namespace mcastcoll::ofi {

class Cq final : public Queue<Cq, fid_cq, fi_ops_cq, FI_CLASS_CQ> {
  public:
    static int open(Domain& domain, fi_cq_attr* attr, fid_cq** cq, void* context);
    Cq(Fabric& fabric, fid_cq& inner, fi_cq_format format)
        : Queue(fabric, inner), own_(format, wait_object_) {}

    // Lets the inner queue clear its descriptor; true if the inner queue has something to read.
    bool inner_pending();
    bool has_own() const { return own_.any(); }
    // The completions of collectives.
    CollectiveCompletions& own() { return own_; }

  private:
    static void fill(fi_ops_cq& ops);
    // source: receives the sources of the completions, or null.
    ssize_t read(void* buffer, std::size_t count);
    ssize_t readfrom(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t progress_and_read_own(void* buffer, std::size_t count, fi_addr_t* source);
    // Reads completions of collectives: a count, -FI_EAVAIL, or -FI_EAGAIN.
    ssize_t read_own(void* buffer, std::size_t count, fi_addr_t* source);
    ssize_t read_blocking(void* buffer, std::size_t count, fi_addr_t* source, int timeout);

    // Blocking reads yield in a loop instead of sleeping, like the inner provider's.
    bool yields_ = false;
    CollectiveCompletions own_;
};

}  // namespace mcastcoll::ofi
