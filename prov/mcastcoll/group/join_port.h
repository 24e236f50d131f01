// What a join needs of the process that it runs in. The provider's port has sockets, endpoints and memories
// behind it; a test's or the simulator's has a network that loses, doubles and reorders.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "group/outbox.h"
#include "wire/join.h"

namespace mcastcoll::group {

class JoinPort {
  public:
    // This member's greeting for this join.
    virtual wire::Hello own_hello() const = 0;
    // A greeting to where rank 0 very likely has its service address: each attempt tries another place.
    virtual void greet(std::uint32_t attempt, Bytes hello) = 0;
    // A datagram to where a member was heard from. Before it was, as greet().
    virtual void send(Rank to, std::uint32_t attempt, Bytes datagram) = 0;
    // The latest greeting of this rank for another join of the same list, which this process has not called;
    // or null.
    virtual const wire::Hello* miscounted_hello(Rank rank) = 0;

    // Between two networks, if it was measured for any group; by the identities that topology::SiteSurvey
    // gives.
    virtual std::optional<Nanoseconds> round_trip(std::uint64_t one, std::uint64_t other) const = 0;
    virtual void keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) = 0;

    // A member's private endpoint, to be told reliably. The error's code is an errno.
    virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
    // 0, or EMSGSIZE: the word is too long, and nobody is told.
    virtual int tell(std::vector<Outbox::Peer> to, wire::ByteString word) = 0;
    // What this join has told and what is not under way yet will not be.
    virtual void withdraw() = 0;

    // A sentence for who wants to know how it went.
    virtual void explain(std::string_view sentence) = 0;

  protected:
    ~JoinPort() = default;
};

}  // namespace mcastcoll::group
