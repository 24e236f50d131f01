// How an endpoint multicasts: over UDP, and over RDMA beside it where there is a device. Opened on the
// interface that the user names, or that has the inner endpoint's address; without one the endpoint's groups
// do without.
#pragma once

#include "ports/multicast_choice.h"
#include "transport/multicast_hub.h"
#include "transport/verbs_options.h"

namespace mcastcoll::ofi {

// A socket address as it travels in join messages: family, port, address bytes. Empty for none.
wire::ByteString encode_address(const SocketAddress& address);
std::optional<SocketAddress> decode_address(const wire::ByteString& bytes);

struct GroupIdentity {
    GroupKey key{};
    Epoch epoch{};
    SocketAddress address;  // of the group's multicasts
    Membership held;        // of an address that exists for as long as somebody has joined it; mostly empty
};

class MulticastSockets {
  public:
    explicit MulticastSockets(const Settings& settings) : settings_(settings) {}

    // own_address: the inner endpoint's, normalised.
    void open(Bytes own_address, bool inner_is_verbs);
    // Does without from now on.
    void give_up(const std::string& why);
    explicit operator bool() const { return transport_ != nullptr; }
    // Only of sockets that are open.
    MulticastTransport& transport() { return *transport_; }
    const MulticastTransport& transport() const { return *transport_; }
    // Over verbs to groups that are not joined.
    bool verbs_sends_anywhere() const { return verbs_ != nullptr && verbs_->sends_anywhere(); }

    // What this endpoint offers to whom it greets.
    void offer(wire::Hello& hello) const;
    // Fails only when the kernel's generator does, or a subnet manager.
    Result<GroupIdentity> new_identity(Carrier carrier);
    Result<Membership> join(const SocketAddress& group);

    MulticastCounters counters() const { return transport_ ? transport_->counters() : MulticastCounters{}; }
    // Null without.
    const VerbsTransport* verbs() const { return verbs_; }

  private:
    Result<void> open_transport(bool inner_is_verbs);
    Result<std::unique_ptr<MulticastHub>> open_udp();
    Result<std::unique_ptr<VerbsTransport>> open_verbs_transport(bool inner_is_verbs);

    const Settings& settings_;
    std::optional<MulticastChoice> choice_;  // none without multicast
    int family_ = 4;
    std::string why_not_;
    std::unique_ptr<MulticastTransport> transport_;
    JoinableTransport* hub_ = nullptr;  // what is at the bottom of it
    std::uint16_t port_ = 0;            // of the groups that this endpoint leads
    std::size_t window_ = 0, datagram_bytes_ = 0;
    VerbsTransport* verbs_ = nullptr;  // part of it
    std::size_t verbs_window_ = 0;
    bool verbs_chooses_ = false;  // the network's management chooses addresses
    bool verbs_failed_ = false;   // a join has failed: groups to come are not asked to try
};

}  // namespace mcastcoll::ofi
