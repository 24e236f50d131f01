#include "ofi/join_plan.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

namespace mcastcoll::ofi {

std::string name_of(const JoinPlan& plan) {
    return fmt::format("group {:x} of {}", plan.id.list_hash & 0xffffff, plan.members.size());
}

wire::ByteString normalise_address(Bytes inner_address) {
    if (auto socket = SocketAddress::from_bytes(inner_address)) {
        const SocketAddress plain =
            socket.value().family() == AF_INET6 ? socket.value().with_scope(0) : socket.value();
        const auto* at = reinterpret_cast<const std::byte*>(plain.data());
        wire::ByteString bytes(at, at + plain.size());
        if (plain.family() == AF_INET)
            std::memset(bytes.data() + offsetof(sockaddr_in, sin_zero), 0, sizeof(sockaddr_in::sin_zero));
        if (plain.family() == AF_INET6)
            std::memset(bytes.data() + offsetof(sockaddr_in6, sin6_flowinfo), 0,
                        sizeof(sockaddr_in6::sin6_flowinfo));
        return bytes;
    }
    // A name such as shm's: up to its zero, and without the "fi_shm://" that only some of its forms carry.
    std::string_view name(reinterpret_cast<const char*>(inner_address.data()), inner_address.size());
    name = name.substr(0, name.find('\0'));
    if (const auto scheme = name.find("://"); scheme != std::string_view::npos)
        name.remove_prefix(scheme + 3);
    const auto* at = reinterpret_cast<const std::byte*>(name.data());
    return wire::ByteString(at, at + std::min(name.size(), wire::kMostAddressBytes));
}

Result<JoinPlan> plan_members(const AvSet& set, fid_av* av, const wire::ByteString& own_address) {
    if (set.av() != av) return Error{FI_EINVAL, "the set is of another address vector than the endpoint's"};
    const std::vector<fi_addr_t> members = set.members();
    if (members.empty()) return Error{FI_EINVAL, "the set is empty"};
    if (members.size() > wire::kMostMembers)
        return Error{FI_EINVAL, fmt::format("the set has {} members, at most {} are supported",
                                            members.size(), wire::kMostMembers)};
    JoinPlan plan;
    plan.self = kNoRank;
    for (fi_addr_t member : members) {
        std::byte raw[wire::kMostAddressBytes] = {};
        std::size_t length = sizeof raw;
        if (const int rc = fi_av_lookup(av, member, raw, &length); rc != 0 || length > sizeof raw)
            return Error{FI_EADDRNOTAVAIL, fmt::format("member {} is not in the address vector", member)};
        plan.members.push_back(normalise_address(Bytes(raw, length)));
        if (plan.members.back() == own_address) plan.self = rank_of(plan.members.size() - 1);
    }
    if (plan.self == kNoRank) return Error{FI_EINVAL, "this endpoint is not a member of the set"};
    // With a key, joins of the same members may be called in any order, as threads do.
    std::vector<wire::ByteString> named = plan.members;
    if (!set.key().empty()) named.push_back(set.key());
    plan.id.list_hash = wire::hash_addresses(named);
    return plan;
}

}  // namespace mcastcoll::ofi
