// Reliable multicast messages of one endpoint (FI_EP_RDM with FI_MULTICAST): the protocol is feed/, pure;
// this is what it stands on. Packets leave by the endpoint's own socket and come by it and the groups';
// messages go into posted buffers. Everything happens under the domain's lock, and moves when queues and
// counters are read.
#pragma once

#include <rdma/fi_endpoint.h>

#include <functional>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/fork.h"
#include "datagram/channel.h"
#include "datagram/fabric.h"
#include "feed/feed.h"
#include "transport/multicast_hub.h"
#include "transport/wait_set.h"

namespace mcastcoll::ofi::datagram {

// What a message holds at most. Of datagrams: what fits in one that is not fragmented.
std::size_t largest_message(const Interface& interface, int family, fi_ep_type type);

class Reliable {
  public:
    class Group;

    // Told of a member that is no longer heard, and how it was lost.
    using OnLost = std::function<void(const SocketAddress&, feed::Loss)>;

    static Result<std::unique_ptr<Reliable>> open(const Domain& domain, Inbox& inbox, int own_socket,
                                                  int family);

    bool has_joined(const SocketAddress& group) const;
    // A group that is heard by this socket, in some of the directions FI_SEND and FI_RECV.
    Result<std::unique_ptr<Group>> join(const SocketAddress& group, int socket, std::uint64_t directions,
                                        OnLost on_lost);
    void progress();
    // Before somebody sleeps on the receiver's descriptor.
    void arm();

  private:
    Reliable(const Settings& settings, Inbox& inbox, int own_socket, std::size_t payload);
    bool drain(int socket, bool multicast);
    void on_packet(Bytes packet, const SocketAddress& source, bool multicast);
    bool is_spoilt();
    void keep_alarm();

    const OwnProcess process_;
    const Settings& settings_;
    Inbox& inbox_;
    const int own_socket_;
    const std::size_t payload_;
    WaitSet alarm_;
    Nanoseconds armed_for_ = kNever;
    bool slept_on_ = false;
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
    Group(Reliable& owner, const SocketAddress& address, int socket, OnLost on_lost,
          const feed::Config& config);
    ~Group();

    // All who hear the group know of this endpoint, as far as can be told.
    bool is_ready() const;
    // All that was sent is with all receivers.
    bool is_settled() const { return protocol_.settled() || !reliable_.process_.is_here(); }
    // Before a message of so many bytes is sent: who has joined is to get it, and what was taken makes room.
    void look(std::size_t size);
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
    void send(const feed::Place& to, Bytes packet) override;
    bool deliver(const feed::Member& from, std::uint8_t flags, Bytes piece) override;
    void lost(const feed::Member& member, feed::Loss how) override;
    void on_packet(const feed::Header& header, Bytes packet, const SocketAddress& source);

    Reliable& reliable_;
    const SocketAddress address_;
    const std::uint64_t key_;
    const int socket_;
    const OnLost on_lost_;
    feed::Feed protocol_;
    Nanoseconds warns_at_{};  // of strangers
    std::unordered_map<feed::MemberId, Partial> partials_;
};

}  // namespace mcastcoll::ofi::datagram
