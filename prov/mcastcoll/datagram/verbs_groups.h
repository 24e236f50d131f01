// Groups of a datagram endpoint over RDMA: one UD queue pair for all of them. Messages to single peers stay
// with the endpoint's socket.
//
// UD has no ports: a group is its address, whatever port it is joined with. Which group a datagram came to is
// not told, so what is only sent to must not be joined; on InfiniBand it has to be.
#pragma once

#include <deque>
#include <memory>

#include "datagram/receiver.h"
#include "provider/settings.h"
#include "transport/verbs_options.h"

namespace mcastcoll::ofi::datagram {

class VerbsGroups {
  public:
    static Result<std::unique_ptr<VerbsGroups>> open(const Interface& interface, const Settings& settings,
                                                     int family);

    // "mlx5_0:1", by which domains are named.
    std::string device() const;
    std::size_t max_message() const { return verbs_->max_payload(); }
    // Made of the queue pair's number: with this port in its address an endpoint is known as the source of
    // what it multicasts.
    std::uint16_t port() const { return verbs_->local_address().port(); }

    // Empty where groups can be sent to without.
    Result<::mcastcoll::Membership> join(const SocketAddress& group, bool receives);
    // 0, or -FI_E*.
    int send(const SocketAddress& group, Pieces pieces);
    // At most so many, into the buffers posted to the receiver.
    void receive(Receiver& receiver, std::size_t most, Receiver::Take take);
    int descriptor() const { return verbs_->descriptor(); }
    // Before sleeping on the descriptor. False: something is there already.
    bool prepare_wait() { return waiting_.empty() && verbs_->prepare_wait(); }

  private:
    explicit VerbsGroups(std::unique_ptr<VerbsTransport> verbs) : verbs_(std::move(verbs)) {}

    std::unique_ptr<VerbsTransport> verbs_;
    // A queue pair hands over a batch at once, and not all of it may find a buffer.
    struct Waiting {
        std::vector<std::byte> bytes;
        SocketAddress source;
    };
    std::deque<Waiting> waiting_;
    std::vector<std::byte> gathered_;
};

}  // namespace mcastcoll::ofi::datagram
