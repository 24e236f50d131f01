// Rendezvous: the service socket, through which peers find an endpoint from its inner provider's address
// alone.
//
// An IP endpoint listens for TCP at ip:port, and its service socket is UDP on the same ip. The UDP port is
// the same number if that is free, otherwise the next free one of kRendezvousCandidates ports, which every
// process derives from the first. A sender tries the candidates in turn. The candidates depend on the port
// only, not on the ip, so that an endpoint bound to the wildcard and its peers, which use one of its real
// addresses, derive the same ports. For a non-IP address (shared memory names) the service socket is a
// datagram socket in the abstract UNIX namespace, named by a hash of the address.
//
// Nothing is authenticated here: received datagrams are untrusted input, and the process at a candidate port
// need not be the peer. The layer above checks. may_be() rejects senders at other addresses, unless they
// forge their source address.
#pragma once

#include <sys/un.h>

#include <array>

#include "base/file_descriptor.h"
#include "base/function_ref.h"
#include "base/result.h"
#include "base/types.h"
#include "transport/rendezvous_source.h"

namespace mcastcoll::transport {

inline constexpr std::size_t kRendezvousCandidates = 4;
inline constexpr std::size_t kRendezvousMaxBytes = 1400;

// The candidate ports, all different, `port` first. The others lie outside the usual ephemeral ranges.
std::array<std::uint16_t, kRendezvousCandidates> rendezvous_ports(std::uint16_t port);

class Rendezvous {
  public:
    static constexpr unsigned kReceiveLimit = 32;
    using Deliver = FunctionRef<void(Bytes bytes, const RendezvousSource& source)>;

    // Binds the first free candidate of an endpoint's own inner address (the bytes of fi_getname). `scope`:
    // the interface of a link-local address; all peers are then on its link.
    static Result<Rendezvous> open(Bytes own_address, std::uint32_t scope = 0);

    // Returns 0 or an errno value: EAGAIN if the peer or the kernel has no room at present, ECONNREFUSED if
    // no socket has that name, EMSGSIZE for more than kRendezvousMaxBytes, EAFNOSUPPORT for an address of
    // another family than this endpoint's, or an error of the network.
    int send(Bytes inner_address, unsigned attempt, Bytes bytes);
    int reply(const RendezvousSource& source, Bytes bytes);
    // Whether `source` is one of the candidates for this inner address.
    static bool may_be(Bytes inner_address, const RendezvousSource& source);
    // Reads at most `max` waiting datagrams, delivers the ones within the size limit, and returns the number
    // read.
    std::size_t receive(Deliver deliver, unsigned max = kReceiveLimit);

    int descriptor() const { return socket_.get(); }
    const RendezvousSource& local() const { return local_; }

  private:
    Rendezvous() = default;
    FileDescriptor socket_;
    RendezvousSource local_;
    std::uint32_t scope_ = 0;
};

}  // namespace mcastcoll::transport
