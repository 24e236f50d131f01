#include "ofi/info_order.h"

#include "transport/interface.h"
#include "transport/verbs_address.h"

namespace mcastcoll::ofi {
namespace {

bool names_a_place(const provider::InfoRequest& request) {
    if (request.node != nullptr) return true;
    const fi_info* hints = request.hints;
    if (hints == nullptr) return false;
    return hints->src_addr != nullptr || hints->dest_addr != nullptr ||
           (hints->domain_attr != nullptr && hints->domain_attr->name != nullptr);
}

transport::SocketAddress source_of(const fi_info& info) {
    const auto* at = static_cast<const std::byte*>(info.src_addr);
    const auto found =
        transport::SocketAddress::from_bytes(at != nullptr ? Bytes(at, info.src_addrlen) : Bytes());
    return found ? found.value() : transport::SocketAddress();
}

}  // namespace

provider::InfoOwner order_infos(provider::InfoOwner list, const provider::InfoRequest& request,
                                const std::string& iface) {
    const auto interfaces = transport::list_interfaces();
    if (!interfaces || names_a_place(request)) return list;
    std::vector<provider::InfoOwner> infos;
    std::vector<transport::SocketAddress> addresses;
    while (list) {
        addresses.push_back(source_of(*list));
        infos.push_back(std::move(list));
        list.reset(std::exchange(infos.back()->next, nullptr));
    }
    const std::string of_device = transport::interface_of_rdma_device(iface);
    const auto order =
        transport::order_addresses(addresses, interfaces.value(), of_device.empty() ? iface : of_device);
    provider::InfoOwner ordered;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        infos[*at]->next = ordered.release();
        ordered = std::move(infos[*at]);
    }
    return ordered;
}

}  // namespace mcastcoll::ofi
