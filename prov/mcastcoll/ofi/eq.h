// Our share of an event queue: reading it moves collectives too, since a join completes into it while the
// application may read nothing else; and a blocking read wakes for them. The events themselves stay in the
// inner provider's queue.
#pragma once

#include <rdma/fi_eq.h>

#include "ofi/queue.h"

namespace mcastcoll::ofi {

class Eq : public Queue<Eq, fid_eq, fi_ops_eq, FI_CLASS_EQ> {
  public:
    static int open(Fabric& fabric, const fi_ops_fabric& inner_ops, fid_fabric& inner_fabric,
                    fi_eq_attr* attr, fid_eq** eq, void* context);
    Eq(Fabric& fabric, fid_eq& inner) : Queue(fabric, inner) {}

    // Lets the inner queue clear its descriptor; true when it has something to read.
    bool inner_pending();

  private:
    static ssize_t read(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                        std::uint64_t flags) noexcept;
    static ssize_t sread(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                         std::uint64_t flags) noexcept;
    ssize_t read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags);
};

}  // namespace mcastcoll::ofi
