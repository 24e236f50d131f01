#include "ports/multicast_sockets.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <array>

#include "base/system.h"
#include "provider/log.h"
#include "transport/verbs_address.h"
#include "wire/bytes.h"

namespace mcastcoll::ports {
namespace {

// Several roots may multicast at the same time, so one root may use only a quarter of a queue pair's
// receives.
constexpr std::size_t kReceivesShare = 4;
// Number of random ports to try until one is not in exclusive use by another socket.
constexpr int kPortAttempts = 8;

}  // namespace

wire::ByteString encode_address(const transport::SocketAddress& address) {
    wire::ByteString bytes(3);
    bytes[0] = static_cast<std::byte>(address.family() == AF_INET ? 4 : 6);
    wire::put(bytes.data() + 1, address.port());
    const Bytes host = address.address_bytes();
    bytes.insert(bytes.end(), host.begin(), host.end());
    return bytes;
}

std::optional<transport::SocketAddress> decode_address(const wire::ByteString& bytes) {
    const bool v4 = bytes.size() == 3 + sizeof(in_addr) && bytes[0] == std::byte{4};
    const bool v6 = bytes.size() == 3 + sizeof(in6_addr) && bytes[0] == std::byte{6};
    if (!v4 && !v6) return {};
    return transport::SocketAddress(Bytes(bytes).subspan(3), wire::get<std::uint16_t>(bytes.data() + 1));
}

void MulticastSockets::open(Bytes own_address, bool inner_is_verbs) {
    if (!settings_.multicast) return give_up("FI_MCASTCOLL_MULTICAST=off");
    auto chosen = choose_interface(settings_, own_address);
    if (chosen) {
        choice_ = std::move(chosen).value();
        family_ = choice_->family;
    }
    const auto opened = chosen ? open_transport(inner_is_verbs) : Result<void>(chosen.error());
    if (opened) return;
    provider::log_line(provider::Level::warn,
                       "multicast is off in this process, which exchanges data by messages only: {}",
                       opened.error().message);
    give_up(opened.error().message);
}

void MulticastSockets::give_up(const std::string& why) {
    why_not_ = why;
    choice_.reset();
    transport_.reset();
    hub_ = nullptr;
    verbs_ = nullptr;
}

// Opens multicast over UDP, and joins an address briefly to learn how much the kernel buffers and whether
// multicast works at all.
Result<std::unique_ptr<transport::MulticastHub>> MulticastSockets::open_udp() {
    auto opened = transport::MulticastHub::open(udp_options(settings_, *choice_));
    if (!opened) return opened.error();
    transport::MulticastHub& hub = *opened.value();
    Result<void> tried = {};
    for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
        const auto identity = new_identity(provider::Carrier::udp);
        if (!identity) return identity.error();
        auto joined = hub.join(identity.value().address);
        port_ = identity.value().address.port();
        tried = joined ? Result<void>() : Result<void>(joined.error());
        if (tried || tried.error().code != EADDRINUSE || settings_.port != 0) break;
        port_ = 0;
    }
    if (!tried) return tried.error();
    for (const bool loop : {false, true})
        if (auto sender = hub.sender(loop); !sender) return sender.error();
    datagram_bytes_ = hub.max_payload();
    window_ = window_of(hub.receive_buffer_bytes(), datagram_bytes_);
    provider::log_line(
        provider::Level::info,
        "multicast on {} (IPv{}, MTU {}): port {}, receive buffer {} bytes, room for {} fragments per root, "
        "{} addresses per socket",
        choice_->interface.name, family_, choice_->interface.mtu, port_, hub.receive_buffer_bytes(), window_,
        hub.memberships_per_socket());
    return opened;
}

Result<void> MulticastSockets::open_transport(bool inner_is_verbs) {
    auto udp = open_udp();
    if (!udp) return udp.error();
    std::unique_ptr<transport::JoinableTransport> paths = std::move(udp).value();
    if (auto verbs = open_verbs_transport(inner_is_verbs)) {
        transport::VerbsTransport* const opened = verbs.value().get();
        auto both = transport::open_both(std::move(paths), std::move(verbs).value());
        if (!both) return both.error();
        paths = std::move(both).value();
        verbs_ = opened;
        verbs_window_ = verbs_->receives() / kReceivesShare;
    } else {
        provider::log_line(
            settings_.transport == provider::Carrier::verbs ? provider::Level::warn : provider::Level::info,
            "multicasts of this process use UDP, not verbs: {}", verbs.error().message);
    }
    hub_ = paths.get();
    transport_ = std::move(paths);
    if (settings_.fault.spoils()) {
        transport::InterceptorSpec spec = settings_.fault;
        spec.seed += static_cast<std::uint64_t>(getpid());  // members must not lose the same datagrams
        transport_ = std::make_unique<transport::Interceptor>(std::move(transport_), spec);
    }
    return {};
}

// Opens multicast over RDMA, and joins a group briefly to learn whether the subnet manager refuses, insists
// on choosing the address, or is absent.
Result<std::unique_ptr<transport::VerbsTransport>> MulticastSockets::open_verbs_transport(
    bool inner_is_verbs) {
    if (settings_.transport == provider::Carrier::udp) return Error{FI_ENODEV, "FI_MCASTCOLL_MULTICAST=udp"};
    if (settings_.transport == provider::Carrier::automatic && !inner_is_verbs)
        return Error{FI_ENODEV, "the inner provider is not verbs"};
    transport::VerbsOptions options{multicast_options(settings_, *choice_)};
    options.receives = settings_.receives;
    auto opened = transport::open_verbs(options);
    if (!opened) return opened;
    transport::VerbsTransport& verbs = *opened.value();
    if (verbs.max_payload() < group::kMinDatagram)
        return Error{FI_EMSGSIZE, fmt::format("datagrams of {} bytes are too short", verbs.max_payload())};
    const auto identity = new_identity(provider::Carrier::verbs);
    if (!identity) return identity.error();
    if (auto tried = verbs.join(identity.value().address); !tried) {
        if (verbs.sends_anywhere()) return tried.error();
        if (const auto any = verbs.join_any(); !any) return tried.error();
        verbs_chooses_ = true;
        provider::log_line(
            provider::Level::info,
            "{}: for groups of this process, the subnet manager chooses the multicast addresses",
            tried.error().message);
    }
    provider::log_line(
        provider::Level::info,
        "multicast on {} over verbs: {}, datagrams of {} bytes, room for {} datagrams received",
        choice_->interface.name, verbs.device(), verbs.max_payload(), verbs.receives());
    return opened;
}

void MulticastSockets::offer(wire::Hello& hello) const {
    hello.address_family = static_cast<std::uint8_t>(family_);
    if (!choice_) return;
    const auto window = [this](std::size_t own) {
        return static_cast<std::uint32_t>(settings_.window != 0 ? settings_.window : own);
    };
    hello.datagram_bytes = static_cast<std::uint32_t>(datagram_bytes_);
    hello.room = hub_->has_room() ? 1 : 0;
    hello.window = window(window_);
    hello.peer.multicast_source = encode_address(*multicast_options(settings_, *choice_).address());
    if (verbs_ == nullptr || verbs_failed_) return;
    hello.verbs.datagram_bytes = static_cast<std::uint32_t>(verbs_->max_payload());
    hello.verbs.window = window(verbs_window_);
    hello.verbs.room = verbs_->has_room() ? 1 : 0;
    hello.verbs.source = encode_address(verbs_->local_address().with_port(0));
}

Result<GroupIdentity> MulticastSockets::new_identity(provider::Carrier carrier) {
    GroupIdentity identity;
    const bool assigned = carrier == provider::Carrier::verbs && verbs_chooses_;
    if (assigned) {
        auto joined = verbs_->join_any();
        if (!joined) return joined.error();
        identity.held = std::move(joined).value();
    }
    do {
        std::array<std::byte, transport::kGroupRandomBytes + 12> random{};
        if (auto filled = kernel_random(random); !filled) return filled.error();
        identity.address = random_group(settings_, family_, port_,
                                        std::span<const std::byte, transport::kGroupRandomBytes>(
                                            random.data(), transport::kGroupRandomBytes));
        if (carrier == provider::Carrier::verbs) identity.address = identity.address.with_port(0);
        identity.key =
            static_cast<GroupKey>(wire::get<std::uint64_t>(random.data() + transport::kGroupRandomBytes));
        identity.epoch =
            static_cast<Epoch>(wire::get<std::uint32_t>(random.data() + transport::kGroupRandomBytes + 8));
    } while (hub_ != nullptr && hub_->has_joined(identity.address));
    if (assigned) identity.address = identity.held.group();
    return identity;
}

Result<transport::Membership> MulticastSockets::join(const transport::SocketAddress& group) {
    if (!transport_) return Error{FI_ENODEV, why_not_};
    if (group.port() != 0) return hub_->join(group);
    if (verbs_ == nullptr) return Error{FI_ENODEV, "the group uses verbs, which this process does not have"};
    auto joined = verbs_->join(group);
    if (!joined && joined.error().code != FI_ENOBUFS) {
        verbs_failed_ = true;
        provider::log_line(provider::Level::warn,
                           "{}: later groups with this process multicast over UDP instead of verbs",
                           joined.error().message);
    }
    return joined;
}

}  // namespace mcastcoll::ports
