// Opening and closing a station, and planning a join.
#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/system.h"
#include "ofi/endpoint.h"
#include "ofi/inner.h"
#include "ofi/live_station.h"
#include "ports/placing.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::uint64_t kTokenBase = std::uint64_t{0x6d63} << 48;

}  // namespace

wire::ByteString normalise_address(Bytes inner_address) {
    if (auto socket = SocketAddress::from_bytes(inner_address)) {
        const auto* at = reinterpret_cast<const std::byte*>(socket.value().data());
        SocketAddress plain =
            socket.value().family() == AF_INET6 ? socket.value().with_scope(0) : socket.value();
        at = reinterpret_cast<const std::byte*>(plain.data());
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

Result<std::unique_ptr<Station>> Station::open(Endpoint& endpoint) {
    return LiveStation::open(endpoint);
}

LiveStation::LiveStation(Endpoint& endpoint)
    : endpoint_(endpoint), settings_(provider_settings()), multicast_(settings_), next_token_(kTokenBase) {}

Result<std::unique_ptr<Station>> LiveStation::open(Endpoint& endpoint) {
    std::unique_ptr<LiveStation> station(new LiveStation(endpoint));
    if (auto opened = station->open_all(); !opened) return opened.error();
    return std::unique_ptr<Station>(std::move(station));
}

Result<void> LiveStation::open_all() {
    std::byte name[wire::kMostAddressBytes];
    std::size_t length = sizeof name;
    if (const int rc = fi_getname(&endpoint_.inner->fid, name, &length); rc != 0 || length > sizeof name)
        return Error{FI_EADDRNOTAVAIL, "the endpoint does not know its own address yet; is it enabled?"};
    own_address_ = normalise_address(Bytes(name, length));
    OwnPlace place = find_own_place(settings_.topology, own_address_);
    place_ = std::move(place.encoded);
    log(Level::info, "this process is at {}", place.text.empty() ? "no known place" : place.text);
    for (const std::string& note : place.notes) log(Level::info, "topology: {}", note);

    auto rendezvous = Rendezvous::open(own_address_);
    if (!rendezvous) return rendezvous.error();
    rendezvous_ = std::make_unique<Rendezvous>(std::move(rendezvous).value());

    const bool chosen = settings_.inner.empty() || settings_.inner == "tcp";  // by us, so ours may differ
    const InfoOwner inner =
        chosen ? for_own_messages(*endpoint_.info) : InfoOwner(fi_dupinfo(endpoint_.info));
    if (!inner) return Error{FI_ENOMEM, "no memory for the private endpoint"};
    if (const int rc = open_inner_fabric(*inner, fabric_.out()); rc != 0)
        return Error{-rc, fmt::format("private fabric: {}", fi_strerror(-rc))};
    log(Level::debug, "own messages go through {}", inner->fabric_attr->prov_name);
    auto messenger = Messenger::open(fabric_.get(), inner.get(), *this);
    if (!messenger) return messenger.error();
    messenger_ = std::move(messenger).value();
    PeerWatchOptions watching;
    watching.peer_timeout_ms = settings_.peer_timeout_ms;
    if (auto own = SocketAddress::from_bytes(own_address_)) watching.local = own.value();
    auto watch = PeerWatch::open(watching);
    if (!watch) return watch.error();
    watch_ = std::move(watch).value();

    poll_set_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
    timer_ = FileDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!poll_set_.valid() || !timer_.valid()) return system_error(errno, "wait descriptors");
    open_multicast();
    for (int descriptor :
         {messenger_->descriptor(), rendezvous_->descriptor(), watch_->descriptor(), timer_.get()})
        if (auto added = add_to_poll_set(descriptor); !added) return added.error();
    return {};
}

void LiveStation::open_multicast() {
    const fi_fabric_attr* fabric = endpoint_.info->fabric_attr;
    const std::string_view inner = fabric != nullptr && fabric->prov_name != nullptr ? fabric->prov_name : "";
    multicast_.open(own_address_, inner.find("verbs") != std::string_view::npos);
    if (!multicast_) return;
    if (auto added = add_to_poll_set(multicast_.transport().descriptor()); !added) {
        log(Level::warn, "no multicast: {}", added.error().message);
        multicast_.give_up(added.error().message);
    }
}

// The group that the application names, if it can lend; else the smallest that has all the members.
std::optional<Loan> LiveStation::find_loan(fi_addr_t named, const std::vector<wire::ByteString>& listeners) {
    std::optional<Loan> best;
    std::size_t size = 0;  // of the group that lends
    const auto consider = [&](Group* group) {
        if (group == nullptr || !group->can_lend() || (best && size <= group->size())) return;
        auto loan = group->lend(listeners);
        if (!loan) return;
        best = std::move(loan);
        size = group->size();
    };
    consider(find(named));
    if (best) return best;
    for (const auto& group : groups_) consider(group.get());
    return best;
}

wire::Hello LiveStation::own_hello(const wire::JoinId& id, Rank self, std::size_t members) const {
    wire::Hello hello;
    hello.id = id;
    hello.rank = self;
    hello.members = static_cast<std::uint32_t>(members);
    hello.peer.private_address = messenger_->address();
    const auto point = encode_watch_point(watch_->local_point());
    hello.peer.watch_point.assign(point.begin(), point.end());
    hello.peer.place = place_;
    multicast_.offer(hello);
    return hello;
}

int LiveStation::join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context) {
    if (mc == nullptr || (flags & ~std::uint64_t{FI_COLLECTIVE}) != 0) return -FI_EINVAL;
    if (endpoint_.eq == nullptr) {
        log(Level::warn, "fi_join: the endpoint has no event queue, so the join could never be reported");
        return -FI_ENOEQ;
    }
    auto plan = plan_join(address, context);
    if (!plan) {
        log(Level::warn, "fi_join: {}", plan.error().message);
        return -plan.error().code;
    }
    const wire::JoinId id = plan.value().id;
    by_token_.reserve(by_token_.size() + 1);
    groups_.push_back(std::make_unique<Group>(*this, std::move(plan).value()));
    Group& group = *groups_.back();
    try {
        by_token_[group.token()] = &group;
        const Nanoseconds time = monotonic_now();
        ++sequences_[id.list_hash];
        joins_.add(group);
        group.core().start(time);
        joins_.deliver_early(group, time);
    } catch (...) {
        // The caller gets no group that it could close. Whoever greets this member as the leader is told so;
        // otherwise the others give up at the join timeout.
        if (group.core().leads()) succeeds([&] { joins_.remember_ended(group, FI_ENOMEM); });
        joins_.remove(group);
        by_token_.erase(group.token());
        for (const GroupKey key : group.keys()) by_key_.erase(static_cast<std::uint64_t>(key));
        groups_.pop_back();
        throw;
    }
    *mc = group.mc();
    joins_.forget_early(id);
    busy_groups_ += group.core().busy();
    keep_alarm();
    return 0;
}

Result<JoinPlan> LiveStation::plan_join(const fi_collective_addr& address, void* context) {
    const AvSet& set = AvSet::from(*address.set);
    const bool known = address.coll_addr == FI_ADDR_NOTAVAIL || address.coll_addr == set.address() ||
                       find(address.coll_addr) != nullptr;
    if (!known)
        return Error{FI_EINVAL, "the address is neither FI_ADDR_NOTAVAIL, nor the set's, nor a group's"};
    if (set.av() != endpoint_.av)
        return Error{FI_EINVAL, "the set is of another address vector than the endpoint's"};
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
        if (const int rc = fi_av_lookup(endpoint_.av, member, raw, &length); rc != 0 || length > sizeof raw)
            return Error{FI_EADDRNOTAVAIL, fmt::format("member {} is not in the address vector", member)};
        plan.members.push_back(normalise_address(Bytes(raw, length)));
        if (plan.members.back() == own_address_) plan.self = rank_of(plan.members.size() - 1);
    }
    if (plan.self == kNoRank) return Error{FI_EINVAL, "this endpoint is not a member of the set"};
    // With a key, joins of the same members may be called in any order, as threads do.
    std::vector<wire::ByteString> named = plan.members;
    if (!set.key().empty()) named.push_back(set.key());
    plan.id.list_hash = wire::hash_addresses(named);
    plan.id.sequence = sequences_[plan.id.list_hash];
    plan.token = next_token_++;
    if (find(address.coll_addr) != nullptr) plan.parent = address.coll_addr;
    plan.context = context;
    plan.settings = set.settings(settings_.group);
    plan.deadline = monotonic_now() + Nanoseconds::from_ms(settings_.join_timeout_ms);
    return plan;
}

LiveStation::~LiveStation() {
    drain();
    while (!groups_.empty()) {
        groups_.back()->add_counters(ended_counters_, ended_levels_);
        groups_.pop_back();
    }
    succeeds([&] { write_statistics(); });
}

// Closed groups whose other members may still need something are served for a while before the endpoint goes.
void LiveStation::drain() {
    if (!messenger_ || !watch_) return;  // opening failed half way
    const Nanoseconds end = monotonic_now() + Nanoseconds::from_ms(settings_.linger_ms);
    while (monotonic_now() < end) {
        progress();
        if (groups_.empty() && messenger_->under_way() == 0) return;
        if (!prepare_wait()) continue;
        epoll_event event;
        epoll_wait(poll_set_.get(), &event, 1, 10);
    }
    if (!groups_.empty())
        log(Level::info, "{} groups were not closed by all members within {} ms", groups_.size(),
            settings_.linger_ms);
}

}  // namespace mcastcoll::ofi
