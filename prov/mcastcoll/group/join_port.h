// The interface between a join and its process.
#pragma once

#include <string_view>

#include "base/result.h"
#include "group/outbox.h"
#include "group/round_trips.h"

namespace mcastcoll::group {

class JoinPort {
  public:
    // This member's hello for this join.
    virtual wire::Hello own_hello() const = 0;
    // Sends a hello to the likely service address of a member: each attempt tries another port.
    virtual void send_hello(Rank to, std::uint32_t attempt, Bytes hello) = 0;
    // Sends a datagram to the address from which a member last sent. If it has not sent yet, tries ports as
    // send_hello() does.
    virtual void send(Rank to, std::uint32_t attempt, Bytes datagram) = 0;
    // The latest hello of this rank for a join of the same list that this process has not called, or null.
    virtual const wire::Hello* miscounted_hello(Rank rank) = 0;

    virtual RoundTrips& round_trips() = 0;

    // Returns the peer at a private address, to which reliable messages can be sent. The error's code is an
    // errno.
    virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
    virtual void queue_message(std::vector<Outbox::Peer> to, wire::ByteString message) = 0;
    // Drops the messages of this join that are not being sent yet.
    virtual void withdraw() = 0;

    // Logs a sentence about the course of the join.
    virtual void explain(std::string_view sentence) = 0;

  protected:
    ~JoinPort() = default;
};

}  // namespace mcastcoll::group
