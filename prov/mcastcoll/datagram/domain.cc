#include "datagram/domain.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/address_vector.h"
#include "datagram/completion_queue.h"
#include "datagram/counter.h"
#include "datagram/endpoint.h"
#include "datagram/info.h"
#include "provider/guard.h"
#include "transport/verbs_address.h"

namespace mcastcoll::ofi::datagram {
namespace {

// Memory registration, which datagram endpoints do not need (their mr_mode is 0), but portable applications
// do anyway. There is no RMA to register for.
struct Region : Object<Region, fid_mr, FI_CLASS_MR, Domain> {
    using Object::hand_out;
    explicit Region(Domain& domain) : Object(domain) { key = FI_KEY_NOTAVAIL; }
};

int make(Handle* object, std::uint64_t access, fid_mr** mr, void* context) noexcept {
    return guard([&] {
        if (object->fclass != FI_CLASS_DOMAIN || mr == nullptr) return -FI_EINVAL;
        if ((access & ~std::uint64_t{FI_SEND | FI_RECV}) != 0) return -FI_EOPNOTSUPP;
        *mr = Region::hand_out(std::make_unique<Region>(object_of<Domain, fid_domain>(object)), context);
        return 0;
    });
}

int reg(Handle* object, const void*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t,
        std::uint64_t, fid_mr** mr, void* context) noexcept {
    return make(object, access, mr, context);
}

int regv(Handle* object, const iovec*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t,
         std::uint64_t, fid_mr** mr, void* context) noexcept {
    return make(object, access, mr, context);
}

int regattr(Handle* object, const fi_mr_attr* attr, std::uint64_t, fid_mr** mr) noexcept {
    if (attr == nullptr || attr->iface != FI_HMEM_SYSTEM) return -FI_EINVAL;
    return make(object, attr->access, mr, attr->context);
}

fi_ops_mr memory_operations{sizeof(fi_ops_mr), &reg, &regv, &regattr};

}  // namespace

Domain::Domain(Fabric& fabric, Interface interface, bool over_verbs)
    : Object(fabric),
      interface_(std::move(interface)),
      over_verbs_(over_verbs),
      settings_(provider_settings()) {}

int Domain::open(Fabric& fabric, const fi_info* info, fid_domain** domain, void* context) {
    static fi_ops_domain ops = [] {
        fi_ops_domain all = refuse_all<fi_ops_domain>();
        all.av_open = &open_av;
        all.cq_open = &open_cq;
        all.endpoint = &open_endpoint;
        all.endpoint2 = &open_endpoint2;
        all.cntr_open = &open_counter;
        return all;
    }();
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
    made->fid_domain::ops = &ops;
    made->fid_domain::mr = &memory_operations;
    *domain = hand_out(std::move(made), context);
    return 0;
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
