#include "datagram/domain.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/address_vector.h"
#include "datagram/completion_queue.h"
#include "datagram/counter.h"
#include "datagram/endpoint.h"
#include "datagram/info.h"
#include "datagram/memory.h"
#include "datagram/refusal.h"
#include "provider/guard.h"
#include "transport/verbs_address.h"

namespace mcastcoll::ofi::datagram {

Domain::Domain(Fabric& fabric, Interface interface, bool over_verbs)
    : fid_domain{},
      fabric_(fabric),
      interface_(std::move(interface)),
      over_verbs_(over_verbs),
      settings_(provider_settings()) {}

int Domain::open(Fabric& fabric, const fi_info* info, fid_domain** domain, void* context) {
    static fi_ops object_ops{sizeof(fi_ops), &close, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse};
    static fi_ops_domain ops{sizeof(fi_ops_domain),
                             &open_av,
                             &open_cq,
                             &open_endpoint,
                             kRefuse,
                             &open_counter,
                             kRefuse,
                             kRefuse,
                             kRefuse,
                             kRefuse,
                             kRefuse,
                             &open_endpoint2};
    if (info == nullptr || domain == nullptr || info->domain_attr == nullptr ||
        info->domain_attr->name == nullptr)
        return -FI_EINVAL;
    const std::string of_device = interface_of_rdma_device(info->domain_attr->name);
    auto interface = find_interface_by_name(of_device.empty() ? info->domain_attr->name : of_device);
    if (!interface) {
        write_log(Level::warn, interface.error().message);
        return -interface.error().code;
    }
    auto made = std::unique_ptr<Domain>(new Domain(fabric, std::move(interface).value(), !of_device.empty()));
    made->fid_domain::fid = {FI_CLASS_DOMAIN, context, &object_ops};
    made->fid_domain::ops = &ops;
    made->fid_domain::mr = &memory_operations();
    fabric.users.enter();
    *domain = made.release();  // close() deletes it
    return 0;
}

int Domain::close(Handle* object) noexcept {
    Domain& domain = object_of<Domain, fid_domain>(object);
    return close_unused(domain, domain.fabric_.users);
}

int Domain::open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context) noexcept {
    return guard([&] { return AddressVector::open(static_cast<Domain&>(*domain), attr, av, context); });
}

int Domain::open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context) noexcept {
    return guard([&] { return CompletionQueue::open(static_cast<Domain&>(*domain), attr, cq, context); });
}

int Domain::open_endpoint(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept {
    return guard([&] { return Endpoint::open(static_cast<Domain&>(*domain), info, endpoint, context); });
}

int Domain::open_endpoint2(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags,
                           void* context) noexcept {
    return flags != 0 ? -FI_EBADFLAGS : open_endpoint(domain, info, endpoint, context);
}

int Domain::open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter, void* context) noexcept {
    return guard([&] { return Counter::open(static_cast<Domain&>(*domain), attr, counter, context); });
}

}  // namespace mcastcoll::ofi::datagram
