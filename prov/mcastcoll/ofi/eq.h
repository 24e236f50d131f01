// Our share of an event queue: reading it moves collectives too, since a join completes into it while the
// application may read nothing else; and a blocking read wakes for them. The events themselves stay in the
// inner provider's queue.
#pragma once

#include <rdma/fi_eq.h>

#include "ofi/fabric.h"
#include "ofi/graft.h"
#include "provider/wait_nest.h"

namespace mcastcoll::ofi {

class Eq {
  public:
    static int open(Fabric& fabric, const fi_ops_fabric& inner_ops, fid_fabric& inner_fabric,
                    fi_eq_attr* attr, fid_eq** eq, void* context);
    static Eq& of(fid_eq& eq) { return Graft<fi_ops_eq>::owner_of<Eq>(eq.ops); }
    // Null when the object is no queue of ours.
    static Eq* find(fid& object);

    Eq(Fabric& fabric, fid_eq& inner) : fabric_(fabric), inner_(inner) {}
    Eq(const Eq&) = delete;
    Eq& operator=(const Eq&) = delete;

    WaitNest& nest() { return nest_; }
    // Lets the inner queue clear its descriptor; true when it has something to read.
    bool inner_pending();

  private:
    static int close(fid* object) noexcept;
    static int control(fid* object, int command, void* argument) noexcept;
    static ssize_t read(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length,
                        std::uint64_t flags) noexcept;
    static ssize_t sread(fid_eq* eq, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                         std::uint64_t flags) noexcept;
    ssize_t read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags);
    void install();

    Fabric& fabric_;
    fid_eq& inner_;
    WaitNest nest_;
    Graft<fi_ops> object_graft_;
    Graft<fi_ops_eq> eq_graft_;
};

}  // namespace mcastcoll::ofi
