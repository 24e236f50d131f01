// Reliable multicast messages of one endpoint (FI_EP_RDM with FI_MULTICAST): the protocol is feed/, pure;
// this is what it stands on. Packets leave by the endpoint's own socket and come by it and the groups';
// messages go into posted buffers. Everything happens under the domain's lock, and moves when queues and
// counters are read.
#pragma once

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/file_descriptor.h"
#include "datagram/receiver.h"
#include "feed/feed.h"
#include "provider/settings.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi::datagram {

class Endpoint;

// What a message of such an endpoint holds at most.
std::size_t reliable_message(std::size_t largest_datagram);

class Reliable {
  public:
    static Result<std::unique_ptr<Reliable>> open(Endpoint& endpoint, int own_socket);
    ~Reliable();

    Result<void> join(const SocketAddress& group, int socket, bool sends, bool receives);
    bool has_joined(const SocketAddress& group) const { return find(group) != nullptr; }
    // All who hear the group know of this endpoint, as far as can be told.
    bool is_ready(const SocketAddress& group) const;
    // All that was sent is with all receivers.
    bool is_settled(const SocketAddress& group) const;
    void leave(const SocketAddress& group);

    // 0, or -FI_EAGAIN while a receiver is a window behind.
    int send(const SocketAddress& group, Pieces pieces, std::size_t size);
    void progress();
    // Before somebody sleeps on the receiver's descriptor.
    void arm();

  private:
    class Group;

    Reliable(Endpoint& endpoint, int own_socket, std::size_t payload);
    Group* find(const SocketAddress& group) const;
    bool multicast(Bytes packets, std::size_t unit, const SocketAddress& group);
    bool drain(int socket, bool multicast);
    void on_packet(Bytes packet, const SocketAddress& source, bool multicast);
    bool is_spoilt();

    Endpoint& endpoint_;
    const Settings& settings_;
    const int own_socket_;
    const std::size_t payload_;
    FileDescriptor timer_;
    Nanoseconds armed_for_ = kNever;
    Nanoseconds looked_at_{};
    bool sends_rows_ = true;
    unsigned behind_ = 0;  // turns in which not everything was read
    std::vector<std::unique_ptr<Group>> groups_;
    std::vector<std::byte> message_;
    std::unique_ptr<std::byte[]> packets_;
    std::mt19937_64 spoiler_;
};

}  // namespace mcastcoll::ofi::datagram
