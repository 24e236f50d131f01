// The provider's part of an event queue. Its reads make progress on collectives too, because a join completes
// to the event queue and the application may read nothing else meanwhile. A blocking read wakes for
// collectives. The events themselves stay in the inner provider's queue.
#pragma once

#include <rdma/fi_eq.h>

#include "ofi/fabric.h"
#include "ofi/queue.h"

namespace mcastcoll::ofi {

class Eq final : public Queue<Eq, fid_eq, fi_ops_eq, FI_CLASS_EQ> {
  public:
    static int open(Fabric& fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
    Eq(Fabric& fabric, fid_eq& inner) : Queue(fabric, inner) {}

    static bool has_own() { return false; }
    // Lets the inner queue clear its descriptor; true if the inner queue has something to read.
    bool inner_pending();

  private:
    ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
    ssize_t read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags);
};

}  // namespace mcastcoll::ofi
