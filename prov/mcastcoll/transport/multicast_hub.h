// All UDP multicast of one endpoint: a few sockets that all its groups share.
//
// Memberships belong to addresses, not to groups of members: whoever wants an address gets a counted share of
// it, and the datagrams of all that is joined come out of one receive(), to be told apart by the group key in
// them. Kernels limit how many addresses a socket may join (20 for IPv4 unless set otherwise), networks how
// many their switches can tell apart, and processes have only so many descriptors. So:
//   - the first few addresses of a port get a socket each, because a socket is also a receive buffer,
//   - later ones go to the socket that has the fewest, until the kernel's limit is reached in all of them,
//   - then another socket is opened, if there is a descriptor,
//   - and if not, join() fails and says why; who called it takes an address that is joined already.
//
// Sending takes two sockets at most, one whose datagrams this host hears and one whose it does not.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transport/udp_multicast.h"

namespace mcastcoll {

class MulticastHub final : public JoinableTransport {
  public:
    static Result<std::unique_ptr<MulticastHub>> open(const UdpMulticastOptions& options);

    Result<Membership> join(const SocketAddress& group) override;
    bool has_joined(const SocketAddress& group) const override { return shares_.count(group) > 0; }
    bool has_room() const override;
    std::size_t memberships() const { return shares_.size(); }
    std::size_t receiving_sockets() const { return receivers_.size(); }
    std::size_t memberships_per_socket() const { return per_socket_; }

    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override;
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    int descriptor() const override { return poll_set_.get(); }
    std::size_t max_payload() const override { return max_payload_; }
    MulticastCounters counters() const override;

    // Opens the socket when it is not there yet. Datagrams sent with this `loop` come from its
    // local_address().
    Result<UdpSender*> sender(bool loop);
    // What the kernel granted, in its own accounting (it doubles what is asked for, to cover its overhead);
    // of the latest socket.
    std::size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }
    // Whether the kernel hands over runs.
    bool receives_runs() const { return receives_runs_; }

  private:
    // Sockets of one port that are opened before memberships share one.
    static constexpr std::size_t kSpread = 4;
    // More than so many ready sockets wait for the next receive().
    static constexpr std::size_t kReady = 16;
    struct Share {
        std::size_t users = 0;
        UdpReceiver* receiver = nullptr;
    };

    explicit MulticastHub(const UdpMulticastOptions& options);
    Result<UdpReceiver*> join_somewhere(const SocketAddress& group);
    Result<UdpReceiver*> open_receiver(const SocketAddress& group);
    UdpReceiver* roomiest(std::uint16_t port, std::size_t& sockets);
    void leave(const SocketAddress& group) override;

    const UdpMulticastOptions options_;
    const std::size_t max_payload_;
    std::size_t per_socket_;
    std::size_t receive_buffer_bytes_ = 0;
    bool receives_runs_ = false;
    FileDescriptor poll_set_;
    UdpSender senders_[2];  // [1] loops
    std::vector<std::unique_ptr<UdpReceiver>> receivers_;
    std::unordered_map<SocketAddress, Share> shares_;
    std::optional<ReceiveBatch> batch_;
    MulticastCounters counters_;
};

}  // namespace mcastcoll
