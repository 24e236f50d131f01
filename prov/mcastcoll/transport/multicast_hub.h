// All UDP multicast of one endpoint: a few sockets shared by its groups (see README.md).
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "transport/joinable_transport.h"
#include "transport/receive_batch.h"
#include "transport/udp_receiver.h"
#include "transport/udp_sender.h"
#include "transport/udp_socket.h"

namespace mcastcoll::transport {

class MulticastHub final : public JoinableTransport {
  public:
    static Result<std::unique_ptr<MulticastHub>> open(const UdpMulticastOptions& options);

    Result<Membership> join(const SocketAddress& group) override;
    bool has_joined(const SocketAddress& group) const override { return shares_.count(group) > 0; }
    bool has_room() const override;
    std::size_t receiving_sockets() const { return receivers_.size(); }
    std::size_t memberships_per_socket() const { return per_socket_; }

    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override;
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    int descriptor() const override { return poll_set_.get(); }
    std::size_t max_payload() const override { return max_payload_; }
    MulticastCounters counters() const override;

    // Returns the sending socket whose datagrams this host receives too (`loop`), or the one whose datagrams
    // it does not. Opens the socket at the first use.
    Result<UdpSender*> sender(bool loop);
    // The size granted by the kernel to the latest socket, in the kernel's own accounting (twice the
    // requested size, to cover overhead).
    std::size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }

  private:
    // Number of receiving sockets opened for a port, each for one membership, before memberships share
    // sockets.
    static constexpr std::size_t kSpread = 4;
    // Maximum number of ready sockets that one receive() reads. The others wait for the next call.
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
    FileDescriptor poll_set_;
    const pid_t opener_ = ::getpid();
    UdpSender senders_[2];  // [0] without loop, [1] with loop
    std::vector<std::unique_ptr<UdpReceiver>> receivers_;
    std::unordered_map<SocketAddress, Share> shares_;
    std::optional<ReceiveBatch> batch_;
    MulticastCounters counters_;
};

}  // namespace mcastcoll::transport
