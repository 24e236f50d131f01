#include "datagram/entry.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "datagram/address_vector.h"
#include "datagram/completion_queue.h"
#include "datagram/counter.h"
#include "datagram/endpoint.h"
#include "datagram/event_queue.h"
#include "datagram/info.h"
#include "datagram/membership.h"
#include "transport/verbs_address.h"

namespace mcastcoll::datagram {
namespace {

ssize_t recv(Endpoint& ep, void* buffer, std::size_t length, void*, fi_addr_t, void* context) {
    const iovec piece{buffer, length};
    return ep.post({&piece, 1}, context, ep.receive_flags());
}

ssize_t recvv(Endpoint& ep, const iovec* pieces, void**, std::size_t count, fi_addr_t, void* context) {
    return ep.post({pieces, count}, context, ep.receive_flags());
}

ssize_t recvmsg(Endpoint& ep, const fi_msg* message, std::uint64_t flags) {
    if (message == nullptr) return -FI_EINVAL;
    return ep.post({message->msg_iov, message->iov_count}, message->context, flags);
}

ssize_t send(Endpoint& ep, const void* buffer, std::size_t length, void*, fi_addr_t to, void* context) {
    const iovec piece{const_cast<void*>(buffer), length};
    return ep.send({{&piece, 1}, to, context, ep.send_flags()});
}

ssize_t sendv(Endpoint& ep, const iovec* pieces, void**, std::size_t count, fi_addr_t to, void* context) {
    return ep.send({{pieces, count}, to, context, ep.send_flags()});
}

ssize_t sendmsg(Endpoint& ep, const fi_msg* message, std::uint64_t flags) {
    if (message == nullptr) return -FI_EINVAL;
    return ep.send({{message->msg_iov, message->iov_count}, message->addr, message->context, flags});
}

ssize_t inject(Endpoint& ep, const void* buffer, std::size_t length, fi_addr_t to) {
    const iovec piece{const_cast<void*>(buffer), length};
    return ep.send({{&piece, 1}, to, nullptr, ep.send_flags(), true});
}

void set_calls(fid_ep& endpoint) {
    constexpr Refusal<-FI_ENOPROTOOPT> kNoOption;
    static fi_ops_ep ops{sizeof(fi_ops_ep), kCall<&Endpoint::cancel>,
                         kNoOption,         kNoOption,
                         kRefuse,           kRefuse,
                         kRefuse,           kRefuse};
    static fi_ops_cm cm = [] {
        fi_ops_cm all = refuse_all<fi_ops_cm>();
        all.setname = kCall<&Endpoint::set_name>;
        all.getname = kCall<&Endpoint::get_name>;
        all.join = kCall<&Membership::join>;
        return all;
    }();
    // Remote data is not supported: the datagram consists of the message alone.
    static fi_ops_msg messages{
        sizeof(fi_ops_msg), kCall<&recv>,    kCall<&recvv>,  kCall<&recvmsg>, kCall<&send>,
        kCall<&sendv>,      kCall<&sendmsg>, kCall<&inject>, kRefuse,         kRefuse};
    // Tagged messages, RMA, atomics and collectives answer -FI_ENOSYS.
    static fi_ops_tagged tagged = refuse_all<fi_ops_tagged>();
    static fi_ops_rma rma = refuse_all<fi_ops_rma>();
    static fi_ops_atomic atomic = refuse_all<fi_ops_atomic>();
    static fi_ops_collective collective = refuse_all<fi_ops_collective>();
    endpoint.ops = &ops;
    endpoint.cm = &cm;
    endpoint.msg = &messages;
    endpoint.tagged = &tagged;
    endpoint.rma = &rma;
    endpoint.atomic = &atomic;
    endpoint.collective = &collective;
}

int open_endpoint(Domain& domain, const fi_info* info, fid_ep** endpoint, void* context) {
    if (info == nullptr || endpoint == nullptr || info->ep_attr == nullptr || info->tx_attr == nullptr ||
        info->rx_attr == nullptr ||
        (info->ep_attr->type != FI_EP_DGRAM && info->ep_attr->type != FI_EP_RDM) ||
        (info->tx_attr->op_flags & ~kSendFlags) != 0 || (info->rx_attr->op_flags & ~kReceiveFlags) != 0 ||
        info->rx_attr->size > kMaxOperations)
        return -FI_EINVAL;
    auto address = own_address(*info, domain.interface);
    if (!address) return provider::refuse("fi_endpoint", address.error());
    provider::InfoOwner copy(fi_dupinfo(info));
    if (!copy) return -FI_ENOMEM;
    auto made = std::make_shared<Endpoint>(domain, std::move(copy), address.value(), context);
    set_calls(*made);
    return made->give_to(*endpoint);
}

// Memory registration. Datagram endpoints do not need registration (their mr_mode is 0), but portable
// applications register memory anyway. There is no RMA to register for.
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

// Implements fi_endpoint2() and fi_domain2(), which have flags; no flag is supported.
template <auto kOpen, typename Parent, typename Structure>
int open2(Parent& parent, fi_info* info, Structure** opened, std::uint64_t flags, void* context) {
    return flags != 0 ? -FI_EBADFLAGS : kOpen(parent, info, opened, context);
}

int open_domain(Fabric& fabric, const fi_info* info, fid_domain** domain, void* context) {
    static fi_ops_domain ops = [] {
        fi_ops_domain all = refuse_all<fi_ops_domain>();
        all.av_open = kCall<&AddressVector::open>;
        all.cq_open = kCall<&CompletionQueue::open>;
        all.endpoint = kCall<&open_endpoint>;
        all.endpoint2 = kCall<&open2<&open_endpoint, Domain, fid_ep>>;
        all.cntr_open = kCall<&Counter::open>;
        return all;
    }();
    static fi_ops_mr memory{sizeof(fi_ops_mr), kCall<&reg<void>>, kCall<&reg<iovec>>, kCall<&regattr>};
    if (info == nullptr || domain == nullptr || info->domain_attr == nullptr ||
        info->domain_attr->name == nullptr)
        return -FI_EINVAL;
    const std::string of_device = transport::interface_of_rdma_device(info->domain_attr->name);
    auto interface =
        transport::find_interface_by_name(of_device.empty() ? info->domain_attr->name : of_device);
    if (!interface) return provider::refuse("fi_domain", interface.error());
    auto made = std::make_shared<Domain>(fabric, std::move(interface).value(), !of_device.empty(), context);
    made->fid_domain::ops = &ops;
    made->fid_domain::mr = &memory;
    return made->give_to(*domain);
}

int trywait(Fabric&, Handle** objects, int count) {
    if (objects == nullptr || count < 0) return -FI_EINVAL;
    int answer = 0;
    // Prepares all objects even if one has events already.
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

}  // namespace

int open_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context) {
    static fi_ops_fabric ops{sizeof(fi_ops_fabric),
                             kCall<&open_domain>,
                             kRefuse,
                             kCall<&EventQueue::open>,
                             kRefuse,
                             kCall<&trywait>,
                             kCall<&open2<&open_domain, Fabric, fid_domain>>};
    auto made = std::make_shared<Fabric>(nullptr, context);
    made->fid_fabric::ops = &ops;
    made->api_version = attr.api_version;
    return made->give_to(*fabric);
}

}  // namespace mcastcoll::datagram
