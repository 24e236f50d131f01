// Our share of an open domain: it hands out grafted endpoints, queues and address vectors when the
// application asked for FI_COLLECTIVE; otherwise it only translates infos and everything is purely the inner
// provider's.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>

#include "ofi/fabric.h"
#include "ofi/graft.h"

namespace mcastcoll::ofi {

class Domain {
  public:
    // 0 or -FI_E*, in which case the inner domain has been closed.
    static int graft(Fabric& fabric, fid_domain& inner, const fi_info& info);
    static Domain& of(fid_domain& domain) { return Graft<fi_ops_domain>::owner_of<Domain>(domain.ops); }

    Domain(Fabric& fabric, fid_domain& inner) : fabric_(fabric), inner_(inner) {}
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    Fabric& fabric() { return fabric_; }
    // The application asked for FI_PROGRESS_AUTO.
    bool is_automatic() const { return automatic_; }

  private:
    static int close(fid* object) noexcept;
    static int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept;
    static int open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                              void* context) noexcept;
    static int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept;
    static int open_poll(fid_domain* domain, fi_poll_attr* attr, fid_poll** set) noexcept;
    static int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept;
    static int query_collective(fid_domain* domain, fi_collective_op operation, fi_collective_attr* attr,
                                std::uint64_t flags) noexcept;
    template <typename Open>
    int open_any_endpoint(fi_info* info, fid_ep** endpoint, Open open);

    Fabric& fabric_;
    fid_domain& inner_;
    bool collective_ = false, automatic_ = false;
    Graft<fi_ops> object_graft_;
    Graft<fi_ops_domain> domain_graft_;
};

}  // namespace mcastcoll::ofi
