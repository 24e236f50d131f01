// Multicast over RDMA beside multicast over UDP: whether this endpoint has it, and what it says of it to
// others.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/live_station.h"
#include "transport/group_address.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

// A fragment has to be worth its header.
constexpr std::size_t kLeastDatagram = 512 + wire::kHeaderBytes;
constexpr std::size_t kMostDatagram = 8192 + wire::kHeaderBytes;

}  // namespace

// Empty when it is to be tried.
std::string LiveStation::why_no_verbs() const {
    switch (settings_.transport) {
        case Carrier::udp:
            return "FI_MCASTCOLL_TRANSPORT=udp";
        case Carrier::verbs:
            return {};
        case Carrier::automatic:
            break;
    }
    const fi_fabric_attr* fabric = endpoint_.info->fabric_attr;
    const std::string_view name = fabric != nullptr && fabric->prov_name != nullptr ? fabric->prov_name : "";
    return name.find("verbs") != std::string_view::npos ? std::string()
                                                        : "the inner provider is none of verbs";
}

// Joins a group for a moment: a subnet manager may refuse, want to choose the address itself, or not be
// there.
Result<std::unique_ptr<VerbsTransport>> LiveStation::open_verbs_transport() {
    if (const std::string why = why_no_verbs(); !why.empty()) return Error{FI_ENODEV, why};
    VerbsOptions options;
    options.interface = *interface_;
    options.family = family_;
    options.ttl = settings_.ttl;
    options.receives = settings_.receives;
    options.payload_limit = kMostDatagram;
    options.most_memberships = settings_.memberships;
    auto opened = open_verbs(options);
    if (!opened) return opened;
    VerbsTransport& verbs = *opened.value();
    if (verbs.max_payload() < kLeastDatagram)
        return Error{FI_EMSGSIZE, fmt::format("datagrams of {} bytes are too short", verbs.max_payload())};
    const auto identity = new_identity(Carrier::verbs);
    if (!identity) return identity.error();
    if (auto tried = verbs.join(identity.value().address); !tried) {
        if (verbs.sends_anywhere()) return tried.error();
        if (const auto any = verbs.join_any(); !any) return tried.error();
        verbs_chooses_ = true;
        log(Level::info, "{}; groups have addresses that the subnet manager chooses", tried.error().message);
    }
    log(Level::info, "multicast on {} over verbs: {}, datagrams of {} bytes, {} can wait", interface_->name,
        verbs.device(), verbs.max_payload(), verbs.receives());
    return opened;
}

void LiveStation::offer_verbs(wire::Hello& hello) const {
    if (verbs_ == nullptr || verbs_failed_) return;
    hello.verbs.datagram_bytes = static_cast<std::uint32_t>(verbs_->max_payload());
    hello.verbs.window = static_cast<std::uint32_t>(settings_.window != 0 ? settings_.window : verbs_window_);
    hello.verbs.room = verbs_->has_room() ? 1 : 0;
    hello.verbs.source = encode_address(verbs_->local_address().with_port(0));
}

Result<Membership> LiveStation::join_address(const SocketAddress& group) {
    if (!multicast_) return Error{FI_ENODEV, no_multicast_};
    if (group.port() != 0) return hub_->join(group);
    if (verbs_ == nullptr) return Error{FI_ENODEV, "the group is of verbs"};
    auto joined = verbs_->join(group);
    if (!joined && joined.error().code != FI_ENOBUFS) {
        verbs_failed_ = true;
        log(Level::warn, "{}; groups to come go over UDP", joined.error().message);
    }
    return joined;
}

}  // namespace mcastcoll::ofi
