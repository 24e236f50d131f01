#include "ofi/member_list.h"

#include <errno.h>
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/file_descriptor.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi {
namespace {

// True if bind() succeeds: no process of this network namespace uses the port. Any error of bind() counts as
// use.
bool is_unused_here(const transport::SocketAddress& at) {
    const FileDescriptor probe(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    return probe.valid() && ::bind(probe.get(), at.data(), at.size()) == 0;
}

// True if all members have this host's address, but none of the other members is on this host. Not checked
// for two members, because the other member may simply have died, nor for more than kMaxProbed, because each
// member costs a socket.
bool is_shared_with_others(const std::vector<wire::ByteString>& members, const wire::ByteString& own) {
    constexpr std::size_t kMaxProbed = 64;
    const auto here = transport::SocketAddress::from_bytes(own);
    if (!here || members.size() < 3 || members.size() > kMaxProbed) return false;
    return std::ranges::all_of(members, [&](const wire::ByteString& member) {
        if (member == own) return true;
        const auto there = transport::SocketAddress::from_bytes(member);
        return there && there.value().same_host(here.value()) && there.value().port() != 0 &&
               !there.value().is_link_local() && is_unused_here(there.value());
    });
}

}  // namespace

Result<void> check_members(const std::vector<wire::ByteString>& members, const wire::ByteString& own,
                           bool over_tcp) {
    if (over_tcp && is_shared_with_others(members, own))
        return Error{FI_EADDRNOTAVAIL,
                     fmt::format("all {} members have the address of this host, {}, but the other members "
                                 "are not on this host: other hosts have the same address. Set "
                                 "FI_MCASTCOLL_IFACE to the interface that connects the hosts",
                                 members.size(), transport::SocketAddress::from_bytes(own).value())};
    return {};
}

}  // namespace mcastcoll::ofi
