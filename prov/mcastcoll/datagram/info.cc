#include "datagram/info.h"

#include <errno.h>
#include <fmt/format.h>
#include <net/if.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/system.h"
#include "datagram/address_vector.h"
#include "datagram/reliable.h"
#include "datagram/sockets.h"
#include "provider/settings.h"
#include "transport/udp_socket.h"
#include "transport/verbs_address.h"

namespace mcastcoll::datagram {
namespace {

constexpr std::uint64_t kPlaces = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t kCaps = FI_MSG | FI_MULTICAST | kDirections | FI_SOURCE | kPlaces;
constexpr std::size_t kUsualOperations = 1024;
// Reported limit of queues, endpoints and so on; memory is the only real limit.
constexpr std::size_t kMany = 65536;

// Returns the hints, or empty ones, which request nothing, if the application gave none.
template <typename Attributes>
const Attributes& or_none(const Attributes* wanted) {
    static const Attributes none{};
    return wanted != nullptr ? *wanted : none;
}

// Returns the first hint, addresses excepted, that is not supported; null if all are supported.
const char* missing(const fi_info& hints) {
    const bool reliable = is_reliable(hints);
    const std::uint64_t orders = reliable ? FI_ORDER_SAS : 0;
    const fi_tx_attr& tx = or_none(hints.tx_attr);
    const fi_rx_attr& rx = or_none(hints.rx_attr);
    const fi_ep_attr& ep = or_none(hints.ep_attr);
    const fi_domain_attr& domain = or_none(hints.domain_attr);
    const char* fabric = or_none(hints.fabric_attr).name;
    const bool automatic =
        domain.control_progress == FI_PROGRESS_AUTO || domain.data_progress == FI_PROGRESS_AUTO;
    const bool known_type = ep.type == FI_EP_DGRAM || ep.type == FI_EP_RDM || ep.type == FI_EP_UNSPEC;
    const std::pair<bool, const char*> lacks[] = {
        {!known_type, "a type other than FI_EP_DGRAM and FI_EP_RDM"},
        {(hints.caps & FI_MSG) == 0, "FI_MULTICAST without FI_MSG"},
        {(hints.caps & ~kCaps) != 0, "other capabilities than FI_MSG, FI_MULTICAST and FI_SOURCE"},
        {reliable && automatic, "automatic progress"},
        {(tx.caps & ~kCaps) != 0, "capabilities of tx_attr"},
        {(tx.op_flags & ~kSendFlags) != 0, "op_flags of tx_attr"},
        {((tx.msg_order | rx.msg_order) & ~orders) != 0, "an order of messages"},
        {tx.size > kMaxOperations, "the size of tx_attr"},
        {tx.iov_limit > kMaxPieces || tx.rma_iov_limit > 0, "iov_limit of tx_attr"},
        {(rx.caps & ~kCaps) != 0, "capabilities of rx_attr"},
        {(rx.op_flags & ~kReceiveFlags) != 0, "op_flags of rx_attr"},
        {rx.comp_order != 0, "an order of completions of receives"},
        {rx.size > kMaxOperations, "the size of rx_attr"},
        {rx.iov_limit > kMaxPieces, "iov_limit of rx_attr"},
        {ep.protocol != FI_PROTO_UNSPEC && (ep.protocol != FI_PROTO_UDP || reliable), "the protocol"},
        {ep.tx_ctx_cnt > 1 || ep.rx_ctx_cnt > 1, "several contexts of an endpoint"},
        {ep.auth_key_size > 0, "an authorization key"},
        {domain.cq_data_size > 0, "remote data"},
        {(domain.caps & ~kPlaces) != 0, "capabilities of domain_attr"},
        {fabric != nullptr && fabric != kFabricName, "the fabric"},
    };
    for (const auto& [is_lacking, what] : lacks)
        if (is_lacking) return what;
    return nullptr;
}

// Addresses in a request for infos; an address that the request does not have is invalid().
struct Ends {
    transport::SocketAddress source, destination;
};

Result<transport::SocketAddress> read_address(const void* raw, std::size_t length, int family) {
    if (raw == nullptr) return transport::SocketAddress();
    auto address =
        transport::SocketAddress::from(static_cast<const sockaddr*>(raw), static_cast<socklen_t>(length));
    if (address && address.value().family() != family)
        return Error{FI_ENODATA,
                     fmt::format("{} is not an IPv{} address", address.value(), family == AF_INET ? 4 : 6)};
    return address;
}

Result<Ends> find_ends(const provider::InfoRequest& request, int family) {
    auto source = read_address(request.hints->src_addr, request.hints->src_addrlen, family);
    if (!source) return source.error();
    auto destination = read_address(request.hints->dest_addr, request.hints->dest_addrlen, family);
    if (!destination) return destination.error();
    Ends ends{source.value(), destination.value()};
    if (request.node == nullptr && request.service == nullptr) return ends;
    const bool passive = (request.flags & FI_SOURCE) != 0;
    auto given =
        resolve(request.node, request.service, family, passive, (request.flags & FI_NUMERICHOST) != 0);
    if (!given) return given.error();
    (passive ? ends.source : ends.destination) = given.value();
    return ends;
}

// The interface selected by the system's routing for this destination.
Result<transport::Interface> find_route(const transport::SocketAddress& destination) {
    auto socket = transport::open_datagram_socket(destination.family());
    if (!socket) return socket.error();
    const transport::SocketAddress to = destination.port() != 0 ? destination : destination.with_port(9);
    if (::connect(socket.value().get(), to.data(), to.size()) != 0)
        return system_error(errno, fmt::format("no route to {}", destination));
    auto own = transport::SocketAddress::of_socket(socket.value().get());
    return own ? transport::find_interface_by_address(own.value())
               : Result<transport::Interface>(own.error());
}

Result<transport::Interface> choose_interface(const Ends& ends, const std::string& domain,
                                              const std::string& named, int family) {
    const auto& [source, destination] = ends;
    if (source.valid() && !source.is_wildcard()) {
        auto owner = transport::find_interface_by_address(source);
        if (owner && !domain.empty() && owner.value().name != domain)
            return Error{FI_ENODATA, fmt::format("{} is not an address of {}", source, domain)};
        return owner;
    }
    if (!domain.empty()) return transport::find_interface_by_name(domain);
    if (const std::string of_device = transport::interface_of_rdma_device(named); !of_device.empty())
        return transport::find_interface_by_name(of_device);
    if (!named.empty()) return transport::find_interface(named);
    if (const unsigned index = destination.scope(); index != 0) {
        char name[IF_NAMESIZE];
        return transport::find_interface_by_name(
            ::if_indextoname(index, name) != nullptr ? name : std::to_string(index));
    }
    if (destination.valid() && !destination.is_multicast()) return find_route(destination);
    return transport::find_interface_by_address(family == AF_INET
                                                    ? transport::SocketAddress(in_addr{INADDR_ANY}, 0)
                                                    : transport::SocketAddress(in6addr_any, 0));
}

bool put_address(const transport::SocketAddress& address, void*& slot, std::size_t& length) {
    slot = std::malloc(address.size());
    if (slot == nullptr) return false;
    length = address.size();
    std::memcpy(slot, address.data(), length);
    return true;
}

void fill_contexts(fi_info& info, const fi_info& hints) {
    const std::uint64_t ways = directions_of(hints);
    const std::uint64_t kinds = FI_MSG | FI_MULTICAST;
    const fi_tx_attr& sends = or_none(hints.tx_attr);
    const fi_rx_attr& receives = or_none(hints.rx_attr);
    info.caps = kinds | ways | (hints.caps & FI_SOURCE) | kPlaces;
    fi_tx_attr& tx = *info.tx_attr;
    tx.caps = (ways & FI_SEND) != 0 ? kinds | FI_SEND : 0;
    tx.op_flags = sends.op_flags;
    tx.comp_order = 0x1ff;  // FI_ORDER_STRICT, for which 2.x warns
    tx.inject_size = info.ep_attr->max_msg_size;
    tx.size = sends.size != 0 ? sends.size : kUsualOperations;
    tx.iov_limit = kMaxPieces;
    fi_rx_attr& rx = *info.rx_attr;
    rx.caps = (ways & FI_RECV) != 0 ? kinds | FI_RECV | (hints.caps & FI_SOURCE) : 0;
    rx.op_flags = receives.op_flags;
    rx.size = receives.size != 0 ? receives.size : kUsualOperations;
    rx.iov_limit = kMaxPieces;
}

void fill_domain(fi_domain_attr& domain, const fi_domain_attr& wanted) {
    const auto progress = [](fi_progress one) { return one != FI_PROGRESS_UNSPEC ? one : FI_PROGRESS_AUTO; };
    domain.threading = wanted.threading != FI_THREAD_UNSPEC ? wanted.threading : FI_THREAD_SAFE;
    // The kernel receives without calls of the application.
    domain.control_progress = progress(wanted.control_progress);
    domain.data_progress = progress(wanted.data_progress);
    domain.resource_mgmt = FI_RM_ENABLED;
    domain.av_type = wanted.av_type;
    domain.mr_mode = 0;
    domain.cq_cnt = domain.ep_cnt = domain.cntr_cnt = domain.mr_cnt = kMany;
    domain.tx_ctx_cnt = domain.rx_ctx_cnt = kMany;
    domain.max_ep_tx_ctx = domain.max_ep_rx_ctx = 1;
    domain.mr_iov_limit = kMaxPieces;
    domain.caps = kPlaces;
}

// Messages of one sender arrive in order, and only while the application reads its queues.
void promise_reliable(fi_info& info) {
    info.tx_attr->msg_order = info.rx_attr->msg_order = FI_ORDER_SAS;
    info.domain_attr->control_progress = info.domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

Result<provider::InfoOwner> make_info(const provider::InfoRequest& request,
                                      const provider::Settings& settings, int family) {
    const fi_info& hints = *request.hints;
    const bool reliable = is_reliable(hints);
    const fi_ep_type type = reliable ? FI_EP_RDM : FI_EP_DGRAM;
    auto ends = find_ends(request, family);
    if (!ends) return ends.error();
    const char* named = or_none(hints.domain_attr).name;
    std::string domain = named != nullptr ? named : "";
    const std::string of_device = transport::interface_of_rdma_device(domain);
    const bool over_verbs =
        !reliable && (domain.empty() ? settings.transport == provider::Carrier::verbs : !of_device.empty());
    auto chosen =
        choose_interface(ends.value(), of_device.empty() ? domain : of_device, settings.iface, family);
    if (!chosen) return chosen.error();
    const transport::Interface& interface = chosen.value();
    if (auto fit = transport::check(
            {.interface = interface, .family = family == AF_INET ? 4 : 6, .ttl = settings.ttl});
        !fit)
        return fit.error();
    std::size_t largest = largest_message(interface, family, type);
    domain = interface.name;
    if (over_verbs) {
        auto groups = open_queue_pair(interface, settings, family);
        if (!groups) return groups.error();
        largest = std::min(largest, groups.value()->max_payload());
        const std::string& device = groups.value()->device();  // "mlx5_0:1, InfiniBand"
        domain = device.substr(0, device.find(','));
    }
    if (or_none(hints.ep_attr).max_msg_size > largest)
        return Error{FI_ENODATA, fmt::format("max_msg_size: messages on {} have at most {} bytes",
                                             interface.name, largest)};
    if (or_none(hints.tx_attr).inject_size > largest)
        return Error{FI_ENODATA, fmt::format("inject_size: at most {} bytes can be injected on {}", largest,
                                             interface.name)};
    provider::InfoOwner info(fi_allocinfo());
    if (!info) return Error{FI_ENOMEM, "no memory for an fi_info"};
    info->addr_format = family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    info->ep_attr->type = type;
    info->ep_attr->protocol = reliable || over_verbs ? FI_PROTO_UNSPEC : FI_PROTO_UDP;
    info->ep_attr->max_msg_size = largest;
    info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
    fill_contexts(*info, hints);
    fill_domain(*info->domain_attr, or_none(hints.domain_attr));
    if (reliable) promise_reliable(*info);
    const auto& [source, destination] = ends.value();
    const transport::SocketAddress& own = source.valid()      ? source
                                          : family == AF_INET ? *interface.v4
                                                              : *interface.v6;
    info->domain_attr->name = strdup(domain.c_str());
    info->fabric_attr->name = strdup(std::string(kFabricName).c_str());
    bool enough = info->domain_attr->name != nullptr && info->fabric_attr->name != nullptr &&
                  put_address(own, info->src_addr, info->src_addrlen);
    if (destination.valid()) enough = enough && put_address(destination, info->dest_addr, info->dest_addrlen);
    if (!enough) return Error{FI_ENOMEM, "no memory for an fi_info"};
    return info;
}

bool is_wanted(int family, std::uint32_t format, int ip) {
    if (format == FI_SOCKADDR_IN) return family == AF_INET;
    if (format == FI_SOCKADDR_IN6) return family == AF_INET6;
    const bool any = format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR;
    return any && (ip == 0 || ip == (family == AF_INET ? 4 : 6));
}

}  // namespace

bool is_reliable(const fi_info& info) {
    return or_none(info.ep_attr).type == FI_EP_RDM;
}

Result<provider::InfoOwner> offers(const provider::InfoRequest& request) {
    if (const char* lacks = missing(*request.hints); lacks != nullptr)
        return Error{FI_ENODATA, fmt::format("datagram endpoints with multicast do not support {}", lacks)};
    const provider::Settings settings = provider::provider_settings();
    provider::InfoOwner list;
    Error last{FI_ENODATA, "the requested address format is neither IPv4 nor IPv6"};
    // Each info is inserted at the front of the list, so IPv4 comes first.
    for (const int family : {AF_INET6, AF_INET}) {
        if (!is_wanted(family, request.hints->addr_format, settings.ip)) continue;
        auto info = make_info(request, settings, family);
        if (!info) {
            last = info.error();
            continue;
        }
        info.value()->next = list.release();
        list = std::move(info).value();
    }
    if (!list) return Error{last.code == FI_ENOMEM ? FI_ENOMEM : FI_ENODATA, last.message};
    return list;
}

Result<transport::SocketAddress> own_address(const fi_info& info, const transport::Interface& interface) {
    if (info.src_addr != nullptr) {
        auto address = transport::SocketAddress::from(static_cast<const sockaddr*>(info.src_addr),
                                                      static_cast<socklen_t>(info.src_addrlen));
        if (address && address.value().is_multicast())
            return Error{FI_EINVAL,
                         fmt::format("the multicast address {} cannot be the address of an endpoint",
                                     address.value())};
        return address;
    }
    const auto& own = info.addr_format == FI_SOCKADDR_IN6 ? interface.v6 : interface.v4;
    if (own) return *own;
    return Error{FI_EADDRNOTAVAIL, fmt::format("{} has no address of the requested format", interface.name)};
}

}  // namespace mcastcoll::datagram
