// The source of a datagram, for reply(). A plain value.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::transport {

class RendezvousSource {
  public:
    // Restores a source from the result of bytes(). Any other bytes give a source that equals no candidate.
    static RendezvousSource from_bytes(Bytes bytes);
    // Returns the candidate number `attempt` for the service socket of the endpoint with this inner address.
    // `scope`: the interface for link-local addresses. Trailing zero bytes of a non-IP address are ignored,
    // because some providers include them and others do not.
    static Result<RendezvousSource> candidate(Bytes inner_address, unsigned attempt, std::uint32_t scope = 0);
    Bytes bytes() const { return std::as_bytes(std::span(reinterpret_cast<const char*>(&address_), size_)); }
    friend bool operator==(const RendezvousSource& left, const RendezvousSource& right);
    std::string to_string() const;

  private:
    friend class Rendezvous;
    union Address {
        sockaddr_un local;  // the largest member
        sockaddr any;
    };
    Address address_{};
    socklen_t size_ = 0;
};

}  // namespace mcastcoll::transport
