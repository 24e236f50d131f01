// The multicast of an endpoint: over UDP, and also over RDMA (verbs) if there is a device. Uses the interface
// named by the user or the interface with the inner endpoint's address. Without such an interface the
// endpoint's groups work without multicast.
#pragma once

#include "ports/multicast_choice.h"
#include "transport/multicast_hub.h"
#include "transport/verbs_transport.h"

namespace mcastcoll::ports {

// Returns a socket address in the form of join messages: family, port, address bytes.
wire::ByteString encode_address(const transport::SocketAddress& address);
// Returns nothing for other bytes.
std::optional<transport::SocketAddress> decode_address(const wire::ByteString& bytes);

struct GroupIdentity {
    GroupKey key{};
    Epoch epoch{};
    transport::SocketAddress address;  // destination of the group's multicasts
    // Membership of an address that the subnet manager has chosen: such an address exists only as long as it
    // has members. Empty for any other address.
    transport::Membership held;
};

class MulticastSockets {
  public:
    explicit MulticastSockets(const provider::Settings& settings) : settings_(settings) {}

    // own_address: the inner endpoint's, normalised.
    void open(Bytes own_address, bool inner_is_verbs);
    // Turns multicast off for this endpoint.
    void give_up(const std::string& why);
    explicit operator bool() const { return transport_ != nullptr; }
    // Requires open sockets.
    transport::MulticastTransport& transport() { return *transport_; }
    const transport::MulticastTransport& transport() const { return *transport_; }
    // True if verbs can send to groups without joining.
    bool verbs_sends_anywhere() const { return verbs_ != nullptr && verbs_->sends_anywhere(); }

    // Fills in the multicast offer in this endpoint's hello.
    void offer(wire::Hello& hello) const;
    // Returns a key, an epoch and a multicast address for a new group. Fails only if the kernel's random
    // generator or a subnet manager fails.
    Result<GroupIdentity> new_identity(provider::Carrier carrier);
    Result<transport::Membership> join(const transport::SocketAddress& group);

    transport::MulticastCounters counters() const {
        return transport_ ? transport_->counters() : transport::MulticastCounters{};
    }
    // The transport over RDMA, or null if this endpoint has none.
    const transport::VerbsTransport* verbs() const { return verbs_; }

  private:
    Result<void> open_transport(bool inner_is_verbs);
    Result<std::unique_ptr<transport::MulticastHub>> open_udp();
    Result<std::unique_ptr<transport::VerbsTransport>> open_verbs_transport(bool inner_is_verbs);

    const provider::Settings& settings_;
    std::optional<MulticastChoice> choice_;  // empty without multicast
    int family_ = 4;
    std::string why_not_;
    std::unique_ptr<transport::MulticastTransport> transport_;
    transport::JoinableTransport* hub_ = nullptr;  // lowest layer of transport_
    std::uint16_t port_ = 0;                       // of the groups led by this endpoint
    std::size_t window_ = 0, datagram_bytes_ = 0;
    transport::VerbsTransport* verbs_ = nullptr;  // part of hub_
    std::size_t verbs_window_ = 0;
    bool verbs_chooses_ = false;  // the subnet manager chooses addresses
    // A join over verbs has failed: this endpoint no longer offers verbs in its hellos.
    bool verbs_failed_ = false;
};

}  // namespace mcastcoll::ports
