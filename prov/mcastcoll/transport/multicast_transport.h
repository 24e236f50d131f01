// The narrow face of an unreliable one-to-many transport. Opening is each transport's own business; what is
// here is all the layers above use, and all an interceptor has to stand in for. Nothing of it allocates,
// throws or blocks once the transport is open.
//
// Joining is beside it. Memberships belong to addresses, not to groups of members: whoever wants an address
// gets a counted share of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/types.h"
#include "transport/interface.h"

namespace mcastcoll {

// What transports have in common that are opened on an interface.
struct MulticastOptions {
    Interface interface;
    // 4 or 6: which of the interface's addresses.
    int family = 4;
    int ttl = 1;
    // Upper bound of max_payload(); 0 is none. The MTU of a loopback makes for 2 MiB of receive buffers.
    std::size_t payload_limit = 0;
    // Different addresses that may be joined at once; 0 is as many as the device, or descriptors, allow.
    std::size_t most_memberships = 0;

    int address_family() const { return family == 4 ? AF_INET : AF_INET6; }
    const std::optional<SocketAddress>& address() const { return family == 4 ? interface.v4 : interface.v6; }
};

// One datagram to send, gathered from up to two pieces so that a payload need not be copied behind its
// header.
struct Datagram {
    Bytes header;
    Bytes payload;
};

// Where a datagram goes.
struct Outlet {
    SocketAddress group;
    // Whether this host gets it, too. False saves the copies where no other process of the host is a member.
    bool loop = true;
};

struct MulticastCounters {
    std::uint64_t datagrams_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t datagrams_received = 0;  // own copies included: the caller filters them
    std::uint64_t bytes_received = 0;
    std::uint64_t truncated = 0;         // longer than max_payload(), dropped
    std::uint64_t send_would_block = 0;  // calls that the kernel could not take everything of
    std::uint64_t send_errors = 0;       // hard errors, see Sent
    std::uint64_t receive_errors = 0;    // hard errors of receiving
    // Dropped by the kernel because the receive buffer was full. A run that arrived as one is counted as one.
    std::uint64_t socket_drops = 0;
    // Runs of datagrams that the kernel was handed, or handed us, as one. Their datagrams are counted above.
    std::uint64_t runs_sent = 0;
    std::uint64_t runs_received = 0;
    // What came back to its own sender, where the transport drops it.
    std::uint64_t own_copies = 0;
    // How often the device's queue had failed and was brought back.
    std::uint64_t revivals = 0;
};

// How many datagrams were accepted, in order. Fewer than given: the errno of the first that was not, or 0
// when the kernel is full for now and it can be tried again.
struct Sent {
    std::size_t accepted = 0;
    int error = 0;
};

// The bytes live until the callback returns, which may change them.
using DeliverDatagram = FunctionRef<void(MutableBytes bytes, const SocketAddress& source)>;

class MulticastTransport {
  public:
    static constexpr std::size_t kBatch = 32;

    virtual ~MulticastTransport() = default;

    virtual Sent send(std::span<const Datagram> datagrams, const Outlet& to) = 0;
    // Takes at most kBatch messages from each of its sockets, delivers the datagrams in them, and returns how
    // many messages it took. A message is one datagram, or a run of them that the kernel kept together: more
    // can be delivered than is returned. Fewer than kBatch: nothing more was waiting. The callback must not
    // join or leave an address.
    virtual std::size_t receive(Nanoseconds now, DeliverDatagram deliver) = 0;
    // When receive() has something to do although descriptor() is silent.
    virtual Nanoseconds next_deadline() const { return kNever; }
    // Polls readable when datagrams wait, provided that prepare_wait() was true since the last receive().
    virtual int descriptor() const = 0;
    // Before sleeping on the descriptor. False: something is there already.
    virtual bool prepare_wait() { return true; }
    // Bytes of header and payload that fit in one unfragmented datagram.
    virtual std::size_t max_payload() const = 0;
    // Makes a system call for socket_drops: not for the hot path.
    virtual MulticastCounters counters() const = 0;
};

class JoinableTransport;

// A share of a joined address; the last one to go leaves it. The transport lives longer.
class Membership {
  public:
    Membership() = default;
    Membership(JoinableTransport& hub, const SocketAddress& group) : hub_(&hub), group_(group) {}
    Membership(Membership&& other) noexcept
        : hub_(std::exchange(other.hub_, nullptr)), group_(other.group_) {}
    Membership& operator=(Membership&& other) noexcept {
        std::swap(hub_, other.hub_);
        std::swap(group_, other.group_);
        return *this;
    }
    ~Membership();
    const SocketAddress& group() const { return group_; }

  private:
    JoinableTransport* hub_ = nullptr;
    SocketAddress group_;
};

class JoinableTransport : public MulticastTransport {
  public:
    // May take as long as the network's management does, a bounded time.
    virtual Result<Membership> join(const SocketAddress& group) = 0;
    virtual bool has_joined(const SocketAddress& group) const = 0;
    // Whether another address could be joined now, as far as can be told.
    virtual bool has_room() const = 0;

  private:
    friend class Membership;
    virtual void leave(const SocketAddress& group) = 0;
};

inline Membership::~Membership() {
    if (hub_ != nullptr) hub_->leave(group_);
}

// Two ways to multicast behind one face. A group's address says which: UD over RDMA is that of groups without
// a port. It is what is preferred, UDP what serves those who cannot.
Result<std::unique_ptr<JoinableTransport>> open_both(std::unique_ptr<JoinableTransport> udp,
                                                     std::unique_ptr<JoinableTransport> verbs);

}  // namespace mcastcoll
