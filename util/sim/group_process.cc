// One process of the simulated groups: hands what comes to the group that it is for, as the station does.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "group/welcome.h"
#include "group_world.h"

namespace mcastcoll::sim {
namespace {

// More means that something is due again at once.
constexpr int kMostTurns = 10'000;

}  // namespace

GroupProcess::GroupProcess(GroupWorld& world, Address self) : world_(world), self_(self) {}
GroupProcess::~GroupProcess() = default;

std::uint32_t GroupProcess::counted() const {
    return self_ == address_of(number(), 0) ? world_.options().counted : 0;
}

bool GroupProcess::has_multicast() const {
    return !world_.options().no_multicast.contains(number());
}

wire::Peer GroupProcess::as_peer() const {
    wire::Peer peer;
    peer.private_address.resize(sizeof self_);
    std::memcpy(peer.private_address.data(), &self_, sizeof self_);
    if (has_multicast()) peer.multicast_source = peer.private_address;
    topology::Place place;
    const std::string site = "site" + std::to_string(world_.site_of(number()));
    place.set_named(topology::Level::site, site);
    place.set_named(topology::Level::segment, site);
    place.set_named(topology::Level::host, "host" + std::to_string(world_.host_of(number())));
    peer.place = group::encode_place(place);
    return peer;
}

Address GroupProcess::at(const wire::ByteString& private_address) {
    Address address = 0;
    std::memcpy(&address, private_address.data(), std::min(private_address.size(), sizeof address));
    return address;
}

wire::ByteString GroupProcess::place_of(std::uint32_t number) {
    wire::ByteString place(sizeof number);
    std::memcpy(place.data(), &number, sizeof number);
    return place;
}

void GroupProcess::call(std::uint32_t group) {
    members_.push_back(std::make_unique<GroupMember>(*this, group + 1, world_.options().groups[group]));
    GroupMember& called = *members_.back();
    joins_.add(called);
    called.call();
    joins_.deliver_early(called, world_.now());
    joins_.forget_early(called.join_id());
}

void GroupProcess::on_datagram(std::uint32_t from, Bytes bytes) {
    const auto kind = wire::join_kind(bytes);
    const bool survey =
        kind == wire::JoinKind::survey || kind == wire::JoinKind::echo || kind == wire::JoinKind::surveyed;
    if (!survey || world_.options().silent != number())
        joins_.on_datagram(bytes, place_of(from), world_.now());
}

void GroupProcess::on_message(Bytes message) {
    if (wire::join_kind(message)) {
        joins_.on_word(message, world_.now());
        return;
    }
    for (const auto& one : members_)
        if (one->has_key(wire::peek_key(message))) return one->core().on_message(message, world_.now());
}

bool GroupProcess::same_host(const wire::ByteString& one, const wire::ByteString& other) const {
    return std::memcmp(one.data(), other.data(), sizeof(std::uint32_t)) == 0;
}

void GroupProcess::reply(const group::Source& source, Bytes datagram) {
    std::uint32_t to = 0;
    std::memcpy(&to, source.data(), sizeof to);
    world_.datagram(self_, to, datagram);
}

void GroupProcess::on_multicast(Bytes datagram) {
    for (const auto& one : members_)
        if (one->listens() && one->has_key(wire::peek_key(datagram)))
            one->core().on_datagram(datagram, world_.now());
}

void GroupProcess::on_peer_lost(Address peer) {
    for (const auto& one : members_) one->core().on_peer_lost(peer, ECONNRESET, "it is gone");
}

void GroupProcess::turn() {
    const Nanoseconds now = world_.now();
    bool again = true;
    for (int turns = 0; again; ++turns) {
        if (turns == kMostTurns) return world_.complain(members_.front()->state() + ": moves for ever");
        again = false;
        next_deadline_ = kNever;
        for (const auto& one : members_) {
            one->core().pump(now);
            again |= one->work();
            if (one->core().next_deadline() <= now) again = true;
            next_deadline_ = std::min(next_deadline_, one->core().next_deadline());
        }
        outbox_.flush(*this);
    }
    for (auto& one : members_)
        if (one->core().done()) {
            joins_.remove(*one);
            world_.retire(std::move(one));
        }
    std::erase(members_, nullptr);
}

bool GroupProcess::has_room(std::size_t) const {
    return under_way_ < world_.options().messages_at_once;
}

bool GroupProcess::can_send() {
    return has_room(0) && outbox_.empty() && world_.may_send(self_);
}

void GroupProcess::send_now(Address to, Bytes header, Bytes payload) {
    world_.message(self_, to, header, payload);
    ++under_way_;
}

void GroupProcess::sent() {
    --under_way_;
    outbox_.flush(*this);
}

}  // namespace mcastcoll::sim
