// Opening and closing a station, and planning a join.
#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "group/welcome.h"
#include "host/segment.h"
#include "ofi/endpoint.h"
#include "ofi/inner.h"
#include "ofi/station.h"
#include "provider/guard.h"
#include "topology/discover.h"

namespace mcastcoll::ofi {
namespace {

constexpr std::uint64_t kTokenBase = std::uint64_t{0x6d63} << 48;
// What a group of sixteen on one host takes.
constexpr std::size_t kRoomWanted = std::size_t{1} << 20;

// Where this process is. The address is the inner endpoint's, normalised; it may be none that has a subnet.
// Without room for shared memory a process is a host of its own.
topology::Discovery find_own_place(const topology::Override& given, const wire::ByteString& inner_address) {
    const auto address = SocketAddress::from_bytes(inner_address);
    topology::Discovery found =
        topology::discover(given, address ? address.value().address_bytes() : Bytes());
    if (const auto room = host::Segment::probe(kRoomWanted); !room && found.place.at(topology::Level::host)) {
        found.place.clear(topology::Level::host);
        found.notes.push_back("served as a host of its own: " + room.error().message);
    }
    return found;
}

}  // namespace

Station::Station(Endpoint& endpoint)
    : endpoint_(endpoint), settings_(provider_settings()), multicast_(settings_), next_token_(kTokenBase) {}

Result<std::unique_ptr<Station>> Station::open(Endpoint& endpoint) {
    std::unique_ptr<Station> station(new Station(endpoint));
    if (auto opened = station->open_all(); !opened) return opened.error();
    return station;
}

Result<void> Station::open_all() {
    std::byte name[wire::kMostAddressBytes];
    std::size_t length = sizeof name;
    if (const int rc = fi_getname(&endpoint_.inner->fid, name, &length); rc != 0 || length > sizeof name)
        return Error{FI_EADDRNOTAVAIL, "the endpoint does not know its own address yet; is it enabled?"};
    own_address_ = normalise_address(Bytes(name, length));
    const topology::Discovery found = find_own_place(settings_.topology, own_address_);
    place_ = group::encode_place(found.place);
    const std::string text = found.place.to_string();
    log_line(Level::info, "this process is at {}", text.empty() ? "no known place" : text);
    for (const std::string& note : found.notes) log_line(Level::info, "topology: {}", note);

    if (auto opened = greetings_.open(own_address_); !opened) return opened.error();

    const bool chosen = settings_.inner.empty() || settings_.inner == "tcp";  // by us, so ours may differ
    const InfoOwner inner =
        chosen ? for_own_messages(*endpoint_.info) : InfoOwner(fi_dupinfo(endpoint_.info));
    if (!inner) return Error{FI_ENOMEM, "no memory for the private endpoint"};
    if (const int rc = open_inner_fabric(*inner, fabric_.out()); rc != 0)
        return Error{-rc, fmt::format("private fabric: {}", fi_strerror(-rc))};
    log_line(Level::debug, "own messages go through {}", inner->fabric_attr->prov_name);
    auto messenger = Messenger::open(fabric_.get(), inner.get(), *this);
    if (!messenger) return messenger.error();
    messenger_ = std::move(messenger).value();
    greetings_.use(*messenger_);
    PeerWatchOptions watching;
    watching.peer_timeout_ms = settings_.peer_timeout_ms;
    if (auto own = SocketAddress::from_bytes(own_address_)) watching.local = own.value();
    if (auto opened = watch_.open(watching); !opened) return opened.error();
    if (auto opened = wait_set_.open(); !opened) return opened.error();
    open_multicast();
    for (int descriptor : {messenger_->descriptor(), greetings_.descriptor(), watch_.descriptor()})
        if (auto added = wait_set_.add(descriptor); !added) return added.error();
    return {};
}

void Station::open_multicast() {
    const fi_fabric_attr* fabric = endpoint_.info->fabric_attr;
    const std::string_view inner = fabric != nullptr && fabric->prov_name != nullptr ? fabric->prov_name : "";
    multicast_.open(own_address_, inner.find("verbs") != std::string_view::npos);
    if (!multicast_) return;
    if (auto added = wait_set_.add(multicast_.transport().descriptor()); !added) {
        log_line(Level::warn, "no multicast: {}", added.error().message);
        multicast_.give_up(added.error().message);
    }
}

wire::Hello Station::own_hello(const wire::JoinId& id, Rank self, std::size_t members) const {
    wire::Hello hello;
    hello.id = id;
    hello.rank = self;
    hello.members = static_cast<std::uint32_t>(members);
    hello.peer.private_address = messenger_->address();
    hello.peer.watch_point = watch_.own_point();
    hello.peer.place = place_;
    multicast_.offer(hello);
    return hello;
}

int Station::join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc, void* context) {
    if (mc == nullptr || (flags & ~std::uint64_t{FI_COLLECTIVE}) != 0) return -FI_EINVAL;
    if (endpoint_.eq == nullptr) {
        log_line(Level::warn,
                 "fi_join: the endpoint has no event queue, so the join could never be reported");
        return -FI_ENOEQ;
    }
    auto plan = plan_join(address, context);
    if (!plan) {
        log_line(Level::warn, "fi_join: {}", plan.error().message);
        return -plan.error().code;
    }
    const wire::JoinId id = plan.value().id;
    auto made = std::make_unique<Group>(*this, std::move(plan).value());
    Group& group = *made;
    try {
        groups_.add(std::move(made));
        const Nanoseconds time = monotonic_now();
        ++sequences_[id.list_hash];
        joins_.add(group);
        group.core().start(time);
        joins_.deliver_early(group, time);
    } catch (...) {
        // The caller gets no group that it could close. Whoever greets this member as the leader is told so;
        // otherwise the others give up at the join timeout.
        if (group.core().join().leads()) succeeds([&] { joins_.remember_ended(group, FI_ENOMEM); });
        joins_.remove(group);
        groups_.remove(group);
        throw;
    }
    *mc = group.mc();
    joins_.forget_early(id);
    busy_groups_ += group.core().busy();
    keep_alarm();
    return 0;
}

Result<JoinPlan> Station::plan_join(const fi_collective_addr& address, void* context) {
    const AvSet& set = AvSet::from(*address.set);
    const bool is_group = groups_.find(address.coll_addr) != nullptr;
    if (address.coll_addr != FI_ADDR_NOTAVAIL && address.coll_addr != set.address() && !is_group)
        return Error{FI_EINVAL, "the address is neither FI_ADDR_NOTAVAIL, nor the set's, nor a group's"};
    auto plan = plan_members(set, endpoint_.av, own_address_);
    if (!plan) return plan;
    plan.value().id.sequence = sequences_[plan.value().id.list_hash];
    plan.value().token = next_token_++;
    if (is_group) plan.value().parent = address.coll_addr;
    plan.value().context = context;
    plan.value().settings = set.settings(settings_.group);
    plan.value().deadline = monotonic_now() + Nanoseconds::from_ms(settings_.join_timeout_ms);
    return plan;
}

Station::~Station() {
    drain();
    succeeds([&] { write_statistics(); });
    groups_.clear();
}

// Closed groups whose other members may still need something are served for a while before the endpoint goes.
void Station::drain() {
    if (!messenger_ || !watch_.is_open()) return;  // opening failed half way
    const Nanoseconds end = monotonic_now() + Nanoseconds::from_ms(settings_.linger_ms);
    while (monotonic_now() < end) {
        progress();
        if (groups_.empty() && messenger_->under_way() == 0) return;
        if (prepare_wait()) wait_set_.sleep(10);
    }
    if (!groups_.empty())
        log_line(Level::info, "{} groups were not closed by all members within {} ms", groups_.size(),
                 settings_.linger_ms);
}

}  // namespace mcastcoll::ofi
