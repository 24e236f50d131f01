// The domain of datagram endpoints: one network interface, and the one lock under which endpoints, queues,
// counters and address vectors of the domain work.
#pragma once

#include <rdma/fi_domain.h>

#include <mutex>

#include "datagram/fabric.h"
#include "datagram/object.h"
#include "provider/settings.h"
#include "transport/interface.h"

namespace mcastcoll::ofi::datagram {

class Domain : public Object<Domain, fid_domain, FI_CLASS_DOMAIN, Fabric> {
  public:
    static int open(Fabric& fabric, const fi_info* info, fid_domain** domain, void* context);

    std::mutex& mutex() { return mutex_; }
    const Interface& interface() const { return interface_; }
    // Its name is an RDMA device's: groups go over that.
    bool over_verbs() const { return over_verbs_; }
    const Settings& settings() const { return settings_; }
    std::uint32_t api_version() const { return parent_.api_version; }

  private:
    Domain(Fabric& fabric, Interface interface, bool over_verbs);
    static int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept;
    static int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept;
    static int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept;
    static int open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                              void* context) noexcept;
    static int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                            void* context) noexcept;

    const Interface interface_;
    const bool over_verbs_;
    const Settings settings_;
    std::mutex mutex_;
};

}  // namespace mcastcoll::ofi::datagram
