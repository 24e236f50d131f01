#include "group_process.h"

#include <fmt/format.h>

#include <cerrno>

#include "group_member.h"

namespace mcastcoll::sim {
namespace {

// A process that needs more turns has a deadline that is due again at once.
constexpr int kMaxTurns = 10'000;

}  // namespace

GroupProcess::GroupProcess(GroupEnvironment& world, Address self)
    : world_(world), self_(self), endpoint_(world.endpoint_of(self)) {}
GroupProcess::~GroupProcess() = default;

std::uint32_t GroupProcess::counted() const {
    return self_ == address_of(number(), 0) ? world_.options().counted : 0;
}

bool GroupProcess::has_multicast() const {
    return world_.options().no_multicast != number();
}

wire::Peer GroupProcess::as_peer() const {
    wire::Peer peer;
    peer.private_address = bytes_of(self_);
    if (has_multicast()) peer.multicast_source = peer.private_address;
    topology::Place place;
    const std::string site = "site" + std::to_string(world_.options().site_of[world_.host_of(number())]);
    place.set_named(topology::Level::site, site);
    place.set_named(topology::Level::segment, site);
    place.set_named(topology::Level::host, "host" + std::to_string(world_.host_of(number())));
    peer.place = topology::encode(place);
    return peer;
}

void GroupProcess::call(std::uint32_t group) {
    members_.push_back(std::make_unique<GroupMember>(*this, world_.shared_group(group)));
    GroupMember& called = *members_.back();
    joins_.add(called);
    called.core().start(world_.now());
    joins_.deliver_pending_hellos(called, world_.now());
    joins_.forget_pending_hellos(called.join_id());
}

void GroupProcess::on_datagram(std::uint32_t from, Bytes bytes) {
    const auto kind = wire::join_kind(wire::proven(bytes, world_.options().key).value_or(Bytes()));
    const bool survey =
        kind == wire::JoinKind::survey || kind == wire::JoinKind::echo || kind == wire::JoinKind::surveyed;
    if (!survey || world_.options().silent != number())
        joins_.on_datagram(bytes, bytes_of(from), world_.now());
}

void GroupProcess::on_earlier_ends() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const group::Group& group = members_[i]->core();
        if (!group.joined()) continue;
        const wire::JoinId id = group.id();
        for (const wire::ByteString& message :
             {wire::encode(wire::Ended{id, ECONNRESET, kNoRank}),
              wire::encode(wire::Answer{wire::JoinKind::abort, id, ECONNRESET})})
            joins_.on_join_message(wire::prove(message, members_[i]->key()), world_.now());
    }
}

void GroupProcess::on_message(Bytes message) {
    if (wire::peek_list(message)) {
        joins_.on_join_message(message, world_.now());
        return;
    }
    for (const auto& one : members_)
        if (one->has_key(wire::peek_key(message))) return one->core().on_message(own(message), world_.now());
}

bool GroupProcess::same_host(const wire::ByteString& one, const wire::ByteString& other) const {
    return std::memcmp(one.data(), other.data(), sizeof(std::uint32_t)) == 0;
}

void GroupProcess::reply(const group::Source& source, Bytes datagram) {
    world_.network().send_datagram(endpoint_, value_of<std::uint32_t>(source), datagram);
}

void GroupProcess::on_multicast(Bytes datagram) {
    for (const auto& one : members_)
        if (one->listens() && one->has_key(wire::peek_key(datagram)))
            one->core().on_datagram(own(datagram), world_.now());
}

// A copy, since the receiver may change the packet, which other receivers get, too.
MutableBytes GroupProcess::own(Bytes packet) {
    const Unmetered network;
    own_.assign(packet.begin(), packet.end());
    return own_;
}

void GroupProcess::on_peer_lost(Address peer) {
    for (const auto& one : members_) one->core().on_peer_lost(peer, ECONNRESET, "it is gone");
}

void GroupProcess::progress() {
    const Nanoseconds now = world_.now();
    bool again = true;
    for (int turns = 0; again; ++turns) {
        if (turns == kMaxTurns) return world_.complain(members_.front()->state() + ": moves for ever");
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
    return has_room(0) && outbox_.empty() && world_.may_send(endpoint_);
}

void GroupProcess::queue_message(std::vector<Address> to, wire::ByteString message,
                                 group::Outbox::Owner owner) {
    if (message.size() > group::kMessageBytes)
        world_.complain(fmt::format("process {}: a join message of {} bytes", number(), message.size()));
    outbox_.post(std::move(to), std::move(message), owner);
}

void GroupProcess::send_now(Address to, Bytes header, Bytes payload) {
    if (header.size() + payload.size() > group::kMessageBytes)
        world_.complain(
            fmt::format("process {}: a message of {} bytes", number(), header.size() + payload.size()));
    world_.message(endpoint_, to, header, payload);
    ++under_way_;
}

void GroupProcess::sent() {
    --under_way_;
    outbox_.flush(*this);
}

}  // namespace mcastcoll::sim
