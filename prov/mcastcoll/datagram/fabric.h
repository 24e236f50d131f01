// A fabric of datagram endpoints with multicast: our own from top to bottom, nothing of it is an inner
// provider's. It exists only for applications that ask fi_getinfo() for FI_EP_DGRAM with FI_MULTICAST.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <string_view>

#include "datagram/object.h"

namespace mcastcoll::ofi::datagram {

class Fabric : public fid_fabric {
  public:
    static int open(const fi_fabric_attr& attr, fid_fabric** fabric, void* context);
    Users users;

  private:
    Fabric() : fid_fabric{} {}
    static int close(Handle* object) noexcept;
    static int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept;
    static int open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                            void* context) noexcept;
    static int open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept;
    static int trywait(fid_fabric* fabric, Handle** objects, int count) noexcept;
};

}  // namespace mcastcoll::ofi::datagram
