// The counterpart of the provider's collective endpoint in virtual time: the groups of one process, and its
// output of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "address.h"
#include "group/joins.h"
#include "group/outbox.h"
#include "group/round_trips.h"
#include "group_environment.h"

namespace mcastcoll::sim {

class GroupMember;

class GroupProcess final : private group::Outbox::Port, private group::Joins::Port {
  public:
    GroupProcess(GroupEnvironment& world, Address self);
    ~GroupProcess();

    GroupEnvironment& world() const { return world_; }
    std::uint32_t endpoint() const { return endpoint_; }
    std::uint32_t number() const { return number_of(self_); }
    // Number of joins of the same members so far.
    std::uint32_t counted() const;
    bool has_multicast() const;
    wire::Peer as_peer() const;
    group::Joins& joins() { return joins_; }
    std::vector<std::unique_ptr<GroupMember>>& members() { return members_; }

    void call(std::uint32_t group);
    void on_datagram(std::uint32_t from, Bytes bytes);
    void on_message(Bytes message);
    // Delivers messages left by an earlier run of the same members, with the same names and the same secret.
    void on_earlier_ends();
    void on_multicast(Bytes datagram);
    void on_peer_lost(Address peer);
    // Runs the groups and the applications until neither makes progress.
    void progress();
    Nanoseconds next_deadline() const { return next_deadline_; }

    bool can_send();
    void send_now(Address to, Bytes header, Bytes payload);
    // Queues a join message; complains if it is longer than the provider's messages may be.
    void queue_message(std::vector<Address> to, wire::ByteString message, group::Outbox::Owner owner);
    void withdraw(group::Outbox::Owner owner) { outbox_.withdraw(owner); }
    void sent();
    group::RoundTrips& round_trips() { return round_trips_; }

  private:
    MutableBytes own(Bytes packet);
    bool has_room(std::size_t) const override;
    void send_join_message(Address to, Bytes message) override { send_now(to, message, {}); }
    // Overrides of group::Joins::Port.
    bool may_be(const wire::ByteString& member, const group::Source& source) const override {
        return member == source;
    }
    bool same_host(const wire::ByteString& one, const wire::ByteString& other) const override;
    void reply(const group::Source& source, Bytes datagram) override;
    Result<Address> peer(const wire::ByteString& private_address) override {
        return value_of<Address>(private_address);
    }
    void queue_message(std::vector<Address> to, wire::ByteString message) override {
        queue_message(std::move(to), std::move(message), group::Outbox::kNoOwner);
    }
    void foreign_version(const group::Source&, std::uint8_t) override {}

    GroupEnvironment& world_;
    const Address self_;
    const std::uint32_t endpoint_;
    std::size_t under_way_ = 0;  // messages in flight
    group::Outbox outbox_;
    std::vector<std::unique_ptr<GroupMember>> members_;  // until closed and no longer needed by peers
    group::Joins joins_{*this};
    group::RoundTrips round_trips_;
    wire::ByteString own_;
    Nanoseconds next_deadline_ = kNever;
};

}  // namespace mcastcoll::sim
