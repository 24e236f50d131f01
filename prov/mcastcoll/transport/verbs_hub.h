// All UD multicast of one endpoint: one queue pair for all its groups, and their addresses.
//
// Groups are joined through the connection manager, which asks the subnet manager on InfiniBand and tells
// routers and switches by IGMP or MLD on RoCE. What it answers is where sends to the group go: an address
// handle, kept for as long as the group is joined. RoCE has no manager to ask, so that a group that is not
// joined can be sent to as well: its handle is made from that of another. A membership that the network ends,
// as InfiniBand's do with their subnet manager, is asked for again.
//
// Groups have an address, and no port: UD knows none.
#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "transport/verbs_queue.h"

namespace mcastcoll {

inline void destroy_event_channel(rdma_event_channel* channel) {
    rdma_destroy_event_channel(channel);
}
// A queue pair goes with its identifier.
inline void destroy_id(rdma_cm_id* id) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
}
using CmChannelOwner = std::unique_ptr<rdma_event_channel, VerbsDestroyer<destroy_event_channel>>;
using CmIdOwner = std::unique_ptr<rdma_cm_id, VerbsDestroyer<destroy_id>>;

class VerbsHub final : public VerbsTransport {
  public:
    explicit VerbsHub(const VerbsOptions& options) : options_(options) {}
    ~VerbsHub() override;
    Result<void> open();

    Result<Membership> join(const SocketAddress& group) override;
    Result<Membership> join_any() override;
    bool has_joined(const SocketAddress& group) const override { return shares_.count(group) > 0; }
    bool has_room() const override;
    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override;
    std::size_t receive(Nanoseconds now, DeliverDatagram deliver) override;
    int descriptor() const override { return queue_->descriptor(); }
    bool prepare_wait() override;
    std::size_t max_payload() const override { return queue_->max_payload(); }
    MulticastCounters counters() const override { return counters_; }
    const SocketAddress& local_address() const override { return local_; }
    std::size_t receives() const override { return queue_->receives(); }
    const std::string& device() const override { return device_; }
    bool sends_anywhere() const override { return ethernet_; }

  private:
    struct Target {
        AddressOwner address;
        std::uint32_t key = 0;
    };
    struct Share {
        std::size_t users = 0;
        // Of the join that is under way, or was.
        bool answered = false;
        int status = 0;
        // The network has forgotten the group, as when its subnet manager was replaced.
        bool lost = false;
        unsigned rejoins = 0;
        Nanoseconds rejoin_at{};
        ibv_ah_attr route{};
        Target target;
    };
    // Requests that were posted with a handle may still be on their way when it is no longer wanted.
    struct Retired {
        std::uint64_t until = 0;
        AddressOwner address;
    };

    Result<void> describe();
    Result<void> join_new(const SocketAddress& group);
    Result<void> await(Share& share);
    int ask(const SocketAddress& group, Share& share);
    void forget(const SocketAddress& group);
    Result<void> reach(const SocketAddress& group, Share& share);
    void look_after();
    void take_events();
    void note_answer(const rdma_cm_event& event);
    void revive();
    void leave(const SocketAddress& group) override;
    VerbsTarget target_of(const SocketAddress& group);
    void retire(AddressOwner address);
    void bury();

    const VerbsOptions options_;
    SocketAddress local_;
    std::string device_;
    bool ethernet_ = false, gone_ = false;
    std::size_t most_memberships_ = 0;
    CmChannelOwner events_;
    CmIdOwner id_;
    std::unique_ptr<VerbsQueue> queue_;
    std::unordered_map<SocketAddress, Share> shares_;
    // RoCE only: how a group is reached, and handles of groups that are not joined.
    ibv_ah_attr route_{};
    std::uint32_t route_key_ = 0;
    bool route_known_ = false;
    std::unordered_map<SocketAddress, Target> others_;
    std::list<Retired> retired_;
    unsigned quiet_turns_ = 0;
    MulticastCounters counters_;
};

}  // namespace mcastcoll
