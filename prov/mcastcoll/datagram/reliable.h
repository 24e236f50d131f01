// Reliable multicast messages of one endpoint (FI_EP_RDM with FI_MULTICAST). The protocol is reliable/, which
// is pure; this class connects it to sockets and buffers. Packets leave through the endpoint's own socket and
// arrive on this socket and on those of the groups. Messages go into posted buffers. All calls need the
// domain's lock, and progress is made when queues and counters are read.
#pragma once

#include <rdma/fi_endpoint.h>

#include <functional>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/own_process.h"
#include "datagram/domain.h"
#include "datagram/inbox.h"
#include "reliable/protocol.h"
#include "transport/receive_batch.h"
#include "transport/wait_set.h"

namespace mcastcoll::datagram {

// Maximum size of a message; for datagram endpoints, of a datagram that IP does not fragment.
std::size_t largest_message(const transport::Interface& interface, int family, fi_ep_type type);

class Reliable {
  public:
    class Group;

    // Called for a lost member, with the kind of loss.
    using OnLost = std::function<void(const transport::SocketAddress&, reliable::Loss)>;

    static Result<std::unique_ptr<Reliable>> open(const Domain& domain, Inbox& inbox, int own_socket,
                                                  int family);

    bool has_joined(const transport::SocketAddress& group) const;
    // Joins a group received on this socket, in one or both of the directions FI_SEND and FI_RECV.
    Result<std::unique_ptr<Group>> join(const transport::SocketAddress& group, int socket,
                                        std::uint64_t directions, OnLost on_lost);
    void progress();
    // Called before a thread sleeps on the receiver's descriptor.
    void arm();

  private:
    Reliable(const provider::Settings& settings, Inbox& inbox, int own_socket, std::size_t payload);
    bool drain(int socket, bool multicast);
    void on_packet(Bytes packet, const transport::SocketAddress& source, bool multicast);
    bool is_spoilt();
    void keep_alarm();

    const OwnProcess process_;
    const provider::Settings& settings_;
    Inbox& inbox_;
    const int own_socket_;
    const std::size_t payload_;
    transport::WaitSet alarm_;
    Nanoseconds armed_for_ = kNever;
    bool slept_on_ = false;
    Nanoseconds looked_at_{};
    bool sends_rows_ = true;
    unsigned behind_ = 0;  // consecutive turns with unread packets
    std::vector<Group*> groups_;
    std::vector<std::byte> message_;
    transport::ReceiveBatch batch_;
    transport::MulticastCounters received_;
    std::mt19937_64 spoiler_;
};

// One member's part in a group. Its destructor leaves the group.
class Reliable::Group final : private reliable::Protocol::Host {
  public:
    Group(Reliable& owner, const transport::SocketAddress& address, int socket, OnLost on_lost,
          const reliable::Config& config);
    ~Group();

    // True when all probes were sent, and all known members have answered or the time for answers is over.
    bool is_ready() const;
    // True when all receivers have every message sent.
    bool is_settled() const { return protocol_.settled() || !reliable_.process_.is_here(); }
    // Called before a message of this size is sent: reads packets, at most once per millisecond while the
    // window has room, so that new members receive the message and acknowledgments free window space.
    void look(std::size_t size);
    // Returns 0, or -FI_EAGAIN while a receiver is a whole window behind.
    int send(Pieces pieces, std::size_t size);

  private:
    friend Reliable;
    // A partly received message.
    struct Partial {
        PostedReceive posted;
        std::size_t length = 0;
    };

    bool multicast(Bytes packets, std::size_t unit) override;
    void send(const reliable::Place& to, Bytes packet) override;
    bool deliver(const reliable::Member& from, std::uint8_t flags, Bytes piece) override;
    void lost(const reliable::Member& member, reliable::Loss how) override;
    void on_packet(const reliable::Header& header, Bytes packet, const transport::SocketAddress& source);

    Reliable& reliable_;
    const transport::SocketAddress address_;
    const std::uint64_t key_;
    const int socket_;
    const OnLost on_lost_;
    reliable::Protocol protocol_;
    Nanoseconds warns_at_{};  // next warning about packets without a valid tag
    std::unordered_map<reliable::MemberId, Partial> partials_;
};

}  // namespace mcastcoll::datagram
