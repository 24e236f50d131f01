// Reliable multicast messages of one endpoint (FI_EP_RDM with FI_MULTICAST): the protocol is feed/, pure;
// this is what it stands on. Packets leave by the endpoint's own socket and come by it and the groups';
// messages go into posted buffers. Everything happens under the domain's lock, and moves when queues and
// counters are read.
#pragma once

#include <rdma/fi_endpoint.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "datagram/receiver.h"
#include "feed/feed.h"
#include "provider/settings.h"
#include "transport/multicast_hub.h"
#include "transport/wait_set.h"

namespace mcastcoll::ofi::datagram {

class Endpoint;
class Membership;

// What a message holds at most. Of datagrams: what fits in one that is not fragmented.
std::size_t largest_message(const Interface& interface, int family, fi_ep_type type);

class Reliable {
  public:
    class Group;

    static Result<std::unique_ptr<Reliable>> open(Endpoint& endpoint, int own_socket);

    bool has_joined(const SocketAddress& group) const;
    // Of the member's address, which it hears by this socket.
    Result<std::unique_ptr<Group>> join(Membership& member, int socket, bool receives);
    void progress();
    // Before somebody sleeps on the receiver's descriptor.
    void arm();

  private:
    Reliable(Endpoint& endpoint, int own_socket, std::size_t payload);
    bool drain(int socket, bool multicast);
    void on_packet(Bytes packet, const SocketAddress& source, bool multicast);
    bool is_spoilt();

    Endpoint& endpoint_;
    const Settings& settings_;
    const int own_socket_;
    const std::size_t payload_;
    WaitSet alarm_;
    Nanoseconds armed_for_ = kNever;
    Nanoseconds looked_at_{};
    bool sends_rows_ = true;
    unsigned behind_ = 0;  // turns in which not everything was read
    std::vector<Group*> groups_;
    std::vector<std::byte> message_;
    ReceiveBatch batch_;
    MulticastCounters received_;
    std::mt19937_64 spoiler_;
};

// One member's part in a group; leaves it when it goes.
class Reliable::Group final : private feed::Feed::Host {
  public:
    Group(Reliable& owner, Membership& member, int socket, const feed::Config& config);
    ~Group();

    // All who hear the group know of this endpoint, as far as can be told.
    bool is_ready() const;
    // All that was sent is with all receivers.
    bool is_settled() const { return protocol_.settled(); }
    // 0, or -FI_EAGAIN while a receiver is a window behind.
    int send(Pieces pieces, std::size_t size);

  private:
    friend Reliable;
    // A message that has begun to arrive.
    struct Partial {
        PostedReceive posted;
        std::size_t length = 0;
    };

    bool multicast(Bytes packets, std::size_t unit) override;
    void send(feed::MemberId to, Bytes packet) override;
    bool deliver(feed::MemberId from, std::uint8_t flags, Bytes piece) override;
    void lost(feed::MemberId member, feed::Loss how) override;
    void note(feed::MemberId member, const SocketAddress& source);
    SocketAddress where(feed::MemberId member) const;

    Reliable& reliable_;
    Membership& member_;
    const SocketAddress address_;
    const std::uint64_t key_;
    const int socket_;
    feed::Feed protocol_;
    std::unordered_map<feed::MemberId, SocketAddress> addresses_;
    std::unordered_map<feed::MemberId, Partial> partials_;
};

}  // namespace mcastcoll::ofi::datagram
