// The provider's part of a domain.
//
// Opens grafted endpoints, queues and address vectors (fabric_open.cc) if the application requested
// FI_COLLECTIVE. Otherwise a Domain only translates infos, and all objects are the inner provider's own.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "ofi/fabric.h"
#include "ofi/grafted.h"

namespace mcastcoll::ofi {

class Domain final : public Grafted<Domain, fid_domain, fi_ops_domain> {
  public:
    // Closes the inner domain if an exception is thrown.
    static void graft(Fabric& fabric, fid_domain& inner, const fi_info& info);
    Domain(Fabric& fabric, fid_domain& inner) : Grafted(inner), fabric_(fabric) {}

    Fabric& fabric() { return fabric_; }
    // True if the application requested FI_PROGRESS_AUTO.
    bool is_automatic() const { return automatic_; }

  private:
    static int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                             void* context) noexcept;

    Fabric& fabric_;
    bool collective_ = false, automatic_ = false;
};

}  // namespace mcastcoll::ofi
