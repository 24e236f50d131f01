// What the provider's station is, in virtual time: the groups of one process, and how its messages go out.
#pragma once

#include <memory>
#include <vector>

#include "group/joins.h"

namespace mcastcoll::sim {

class GroupMember;
class GroupWorld;

// A process as messages reach it: its number, and how often it was started before. Datagrams go to whoever
// has the number.
using Address = group::Outbox::Peer;
constexpr Address address_of(std::uint32_t number, std::uint32_t restarts) {
    return std::uint64_t{restarts} << 32 | number;
}
constexpr std::uint32_t number_of(Address address) {
    return static_cast<std::uint32_t>(address);
}

class GroupProcess final : private group::Outbox::Port, private group::Joins::Port {
  public:
    GroupProcess(GroupWorld& world, Address self);
    ~GroupProcess();

    GroupWorld& world() const { return world_; }
    Address address() const { return self_; }
    std::uint32_t number() const { return number_of(self_); }
    // That it has given to joins of the same members.
    std::uint32_t counted() const;
    bool has_multicast() const;
    wire::Peer as_peer() const;
    static Address at(const wire::ByteString& private_address);
    // Where datagrams to this number go: what applications know of a process.
    static wire::ByteString place_of(std::uint32_t number);
    group::Joins& joins() { return joins_; }
    std::vector<std::unique_ptr<GroupMember>>& members() { return members_; }

    void call(std::uint32_t group);
    void on_datagram(std::uint32_t from, Bytes bytes);
    void on_message(Bytes message);
    void on_multicast(Bytes datagram);
    void on_peer_lost(Address peer);
    // Pumps the groups and lets the applications work, until nothing more comes of it.
    void turn();
    Nanoseconds next_deadline() const { return next_deadline_; }

    bool can_send();
    void send_now(Address to, Bytes header, Bytes payload);
    void tell(std::vector<Address> to, wire::ByteString word, group::Outbox::Owner owner) {
        outbox_.post(std::move(to), std::move(word), owner);
    }
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    void sent();
    group::RoundTrips& round_trips() { return round_trips_; }

  private:
    bool has_room(std::size_t) const override;
    void send_word(Address to, Bytes word) override { send_now(to, word, {}); }
    // group::Joins::Port
    bool may_be(const wire::ByteString& member, const group::Source& source) const override {
        return member == source;
    }
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    void reply(const group::Source& source, Bytes datagram) override;
    Result<Address> peer(const wire::ByteString& private_address) override { return at(private_address); }
    void tell(std::vector<Address> to, wire::ByteString word) override {
        tell(std::move(to), std::move(word), group::Outbox::kNobody);
    }
    void foreign_version(const group::Source&, std::uint8_t) override {}

    GroupWorld& world_;
    const Address self_;
    std::size_t under_way_ = 0;  // messages
    group::Outbox outbox_;
    std::vector<std::unique_ptr<GroupMember>> members_;  // until they are closed and nobody needs them
    group::Joins joins_{*this};
    group::RoundTrips round_trips_;
    Nanoseconds next_deadline_ = kNever;
};

}  // namespace mcastcoll::sim
