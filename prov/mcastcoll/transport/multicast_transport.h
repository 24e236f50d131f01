// The interface of an unreliable multicast transport. Each transport has its own way of opening. This
// interface contains all calls of the layers above, which an interceptor must implement. After opening, no
// call allocates, throws or blocks.
//
// Joining is separate. Memberships belong to addresses, not to groups of members: each user of an address
// holds a counted share of the membership.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/types.h"
#include "transport/interface.h"

namespace mcastcoll::transport {

// One datagram to send, in up to two pieces, so that the payload is not copied behind its header.
struct Datagram {
    Bytes header;
    Bytes payload;
};

// Destination of a datagram.
struct Outlet {
    SocketAddress group;
    // Whether this host receives the datagram too. If no other process of the host is a member, false saves
    // the kernel's copies.
    bool loop = true;
};

struct MulticastCounters {
    std::uint64_t datagrams_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t datagrams_received = 0;  // includes copies of own datagrams, which the caller filters
    std::uint64_t bytes_received = 0;
    std::uint64_t truncated = 0;         // datagrams longer than max_payload(), dropped
    std::uint64_t send_would_block = 0;  // calls in which the kernel accepted only some datagrams
    std::uint64_t send_errors = 0;       // hard errors, see Sent
    std::uint64_t receive_errors = 0;    // hard errors while receiving
    // Datagrams dropped by the kernel because the receive buffer was full. A run of datagrams counts as one.
    std::uint64_t socket_drops = 0;
    // Runs of datagrams passed to or received from the kernel as one message. Their datagrams are also
    // counted above.
    std::uint64_t runs_sent = 0;
    std::uint64_t runs_received = 0;
    // Own datagrams that returned and were dropped by the transport.
    std::uint64_t own_copies = 0;
    // Number of times a failed device queue was restored.
    std::uint64_t revivals = 0;
};

// Number of datagrams accepted, in order. If fewer than given, `error` is the errno of the first one not
// accepted, or 0 if the kernel has no room at present and the caller may try again.
struct Sent {
    std::size_t accepted = 0;
    int error = 0;
};

// The bytes are valid until the callback returns. The callback may change them.
using DeliverDatagram = FunctionRef<void(MutableBytes bytes, const SocketAddress& source)>;

class MulticastTransport {
  public:
    static constexpr std::size_t kBatch = 32;

    virtual ~MulticastTransport() = default;

    virtual Sent send(std::span<const Datagram> datagrams, const Outlet& to) = 0;
    // Takes at most kBatch messages from each socket, delivers their datagrams and returns the number of
    // messages. A message is one datagram or a run kept together by the kernel, so the number of datagrams
    // may exceed the return value. Fewer than kBatch: no more messages were waiting. The callback must not
    // join or leave an address.
    virtual std::size_t receive(Nanoseconds now, DeliverDatagram deliver) = 0;
    // The time when receive() has work although descriptor() does not poll readable.
    virtual Nanoseconds next_deadline() const { return kNever; }
    // Polls readable when datagrams wait, provided that prepare_wait() has returned true since the last
    // receive().
    virtual int descriptor() const = 0;
    // Called before sleeping on the descriptor. Returns false if datagrams are waiting already.
    virtual bool prepare_wait() { return true; }
    // Maximum size of header and payload in one unfragmented datagram.
    virtual std::size_t max_payload() const = 0;
    // Makes a system call for socket_drops; not for the fast path.
    virtual MulticastCounters counters() const = 0;
};

class JoinableTransport;

// Combines two transports. The group's address selects one: groups without a port use UD over RDMA. UD is
// preferred; UDP serves members without RDMA.
Result<std::unique_ptr<JoinableTransport>> open_both(std::unique_ptr<JoinableTransport> udp,
                                                     std::unique_ptr<JoinableTransport> verbs);

}  // namespace mcastcoll::transport
