// Rendezvous: the service socket by which peers find an endpoint knowing nothing but its inner provider's
// address.
//
// An IP endpoint listens for TCP at ip:port, so its service socket is UDP on the same ip. The port is the
// same too unless somebody has it: then the next of kRendezvousCandidates ports that everybody derives from
// the first one. A sender tries them in turn. They are derived from the port alone, not the ip, so that an
// endpoint bound to the wildcard and its peers, who know it by one of its real addresses, agree. For an
// address that is not IP (shared memory names) it is a datagram socket in the abstract UNIX namespace, named
// by a hash of the address.
//
// Nothing is authenticated here: what arrives is input, and who answers at a candidate need not be the peer.
// The layer above checks. may_be() keeps out who is elsewhere, unless it can forge its address.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <string>

#include "base/file_descriptor.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "base/types.h"
#include "transport/socket_address.h"

namespace mcastcoll {

inline constexpr std::size_t kRendezvousCandidates = 4;
inline constexpr std::size_t kRendezvousMaxBytes = 1400;

// The ports to look at, all different, the first `port` itself. They lie outside the usual ephemeral ranges.
std::array<std::uint16_t, kRendezvousCandidates> rendezvous_ports(std::uint16_t port);

// Where a datagram came from, to be answered with reply(). A plain value.
class RendezvousSource {
  public:
    // What bytes() gave; of anything else nobody.
    static RendezvousSource from_bytes(Bytes bytes);
    // One of the places where an endpoint with this inner address may have its socket. Trailing zero bytes of
    // an address that is not IP do not count: some hand out strings with, some without.
    // `scope`: the interface that link-local addresses are meant on.
    static Result<RendezvousSource> candidate(Bytes inner_address, unsigned attempt, std::uint32_t scope = 0);
    Bytes bytes() const { return std::as_bytes(std::span(reinterpret_cast<const char*>(&address_), size_)); }
    friend bool operator==(const RendezvousSource& left, const RendezvousSource& right);
    std::string to_string() const;

  private:
    friend class Rendezvous;
    union Address {
        sockaddr_un local;  // the largest
        sockaddr any;
    };
    Address address_{};
    socklen_t size_ = 0;
};

class Rendezvous {
  public:
    static constexpr unsigned kReceiveLimit = 32;
    using Deliver = FunctionRef<void(Bytes bytes, const RendezvousSource& source)>;

    // Binds the first free candidate of an endpoint's own inner address (fi_getname's bytes).
    // `scope`: the interface of a link-local one, on whose link all peers are then.
    static Result<Rendezvous> open(Bytes own_address, std::uint32_t scope = 0);

    // 0, or an errno: EAGAIN when the peer or the kernel is full for now, ECONNREFUSED when nobody has that
    // name, EMSGSIZE for more than kRendezvousMaxBytes, EAFNOSUPPORT for an address of another kind than our
    // own, or what the network says.
    int send(Bytes inner_address, unsigned attempt, Bytes bytes);
    int reply(const RendezvousSource& source, Bytes bytes);
    // Whether this is one of the candidates.
    static bool may_be(Bytes inner_address, const RendezvousSource& source);
    // Reads at most so many waiting datagrams, and delivers those that are not too long; returns how many it
    // has read.
    std::size_t receive(Deliver deliver, unsigned most = kReceiveLimit);

    int descriptor() const { return socket_.get(); }
    const RendezvousSource& local() const { return local_; }

  private:
    Rendezvous() = default;
    FileDescriptor socket_;
    RendezvousSource local_;
    std::uint32_t scope_ = 0;
};

}  // namespace mcastcoll
