#include "datagram/fabric.h"

#include "datagram/address_vector.h"
#include "datagram/endpoint.h"
#include "datagram/queues.h"
#include "transport/verbs_address.h"

namespace mcastcoll::ofi::datagram {
namespace {

// Memory registration, which datagram endpoints do not need (their mr_mode is 0), but portable applications
// do anyway. There is no RMA to register for.
struct Region : Object<Region, fid_mr, FI_CLASS_MR, Domain> {
    using Object::Object;
};

int make(Domain& domain, std::uint64_t access, fid_mr** mr, void* context) {
    if (mr == nullptr) return -FI_EINVAL;
    if ((access & ~std::uint64_t{FI_SEND | FI_RECV}) != 0) return -FI_EOPNOTSUPP;
    auto made = std::make_shared<Region>(domain.shared_from_this(), context);
    made->key = FI_KEY_NOTAVAIL;
    return made->give_to(*mr);
}

template <typename Memory>
int reg(Domain& domain, const Memory*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t,
        std::uint64_t, fid_mr** mr, void* context) {
    return make(domain, access, mr, context);
}

int regattr(Domain& domain, const fi_mr_attr* attr, std::uint64_t, fid_mr** mr) {
    if (attr == nullptr || attr->iface != FI_HMEM_SYSTEM) return -FI_EINVAL;
    return make(domain, attr->access, mr, attr->context);
}

// The form with flags, of which there are none.
template <typename Self, typename Parent, typename Structure>
int open2(Parent& parent, fi_info* info, Structure** opened, std::uint64_t flags, void* context) {
    return flags != 0 ? -FI_EBADFLAGS : Self::open(parent, info, opened, context);
}

}  // namespace

int Fabric::open(const fi_fabric_attr& attr, fid_fabric** fabric, void* context) {
    static fi_ops_fabric ops{sizeof(fi_ops_fabric),
                             kCall<&Domain::open>,
                             kRefuse,
                             kCall<&EventQueue::open>,
                             kRefuse,
                             kCall<&Fabric::trywait>,
                             kCall<&open2<Domain, Fabric, fid_domain>>};
    auto made = std::make_shared<Fabric>(nullptr, context);
    made->fid_fabric::ops = &ops;
    made->api_version = attr.api_version;
    return made->give_to(*fabric);
}

int Fabric::trywait(Handle** objects, int count) {
    if (objects == nullptr || count < 0) return -FI_EINVAL;
    int answer = 0;
    // All of them are prepared, even if one has something already.
    for (int i = 0; i < count; ++i) {
        bool pending = false;
        if (EventQueue* eq = EventQueue::find(*objects[i]); eq != nullptr) {
            pending = eq->pending();
        } else if (CompletionQueue* cq = CompletionQueue::find(*objects[i]); cq != nullptr) {
            cq->prepare_wait();
            pending = cq->pending();
        } else if (Counter* counter = Counter::find(*objects[i]); counter != nullptr) {
            counter->prepare_wait();
        } else {
            return -FI_EINVAL;
        }
        if (pending) answer = -FI_EAGAIN;
    }
    return answer;
}

int Domain::open(Fabric& fabric, const fi_info* info, fid_domain** domain, void* context) {
    static fi_ops_domain ops = [] {
        fi_ops_domain all = refuse_all<fi_ops_domain>();
        all.av_open = kCall<&AddressVector::open>;
        all.cq_open = kCall<&CompletionQueue::open>;
        all.endpoint = kCall<&Endpoint::open>;
        all.endpoint2 = kCall<&open2<Endpoint, Domain, fid_ep>>;
        all.cntr_open = kCall<&Counter::open>;
        return all;
    }();
    static fi_ops_mr memory{sizeof(fi_ops_mr), kCall<&reg<void>>, kCall<&reg<iovec>>, kCall<&regattr>};
    if (info == nullptr || domain == nullptr || info->domain_attr == nullptr ||
        info->domain_attr->name == nullptr)
        return -FI_EINVAL;
    const std::string of_device = interface_of_rdma_device(info->domain_attr->name);
    auto interface = find_interface_by_name(of_device.empty() ? info->domain_attr->name : of_device);
    if (!interface) return refuse("fi_domain", interface.error());
    auto made = std::make_shared<Domain>(fabric, std::move(interface).value(), !of_device.empty(), context);
    made->fid_domain::ops = &ops;
    made->fid_domain::mr = &memory;
    return made->give_to(*domain);
}

}  // namespace mcastcoll::ofi::datagram
