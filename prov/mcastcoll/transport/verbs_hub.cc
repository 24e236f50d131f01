// All UD multicast of one endpoint: one queue pair for all its groups, and their addresses.
//
// The connection manager answers a join with the route to the group. From the route the hub makes an address
// handle, which is kept while the group is joined. See README.md.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <list>
#include <unordered_map>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/system.h"
#include "transport/verbs_queue.h"

namespace mcastcoll::transport {
namespace {

// Maximum number of cached address handles of groups that are not joined. A full cache is cleared.
constexpr std::size_t kMaxOthers = 256;
constexpr std::size_t kMaxEvents = 64;
// A polling caller that never sleeps checks for events of the device and the groups every kQuietTurns idle
// turns, because the check costs a system call.
constexpr unsigned kQuietTurns = 1024;
// A group ended by the network is joined again at once. Each further attempt waits twice as long as the one
// before, from 0.1 s on. The last attempt comes 25 s after the first.
constexpr unsigned kMaxRejoins = 9;
constexpr std::int64_t kRejoinPauseMs = 100;

void destroy_event_channel(rdma_event_channel* channel) {
    rdma_destroy_event_channel(channel);
}
// Destroys the queue pair with its identifier.
void destroy_id(rdma_cm_id* id) {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
}
using CmChannelOwner = std::unique_ptr<rdma_event_channel, VerbsDestroyer<destroy_event_channel>>;
using CmIdOwner = std::unique_ptr<rdma_cm_id, VerbsDestroyer<destroy_id>>;

class VerbsHub final : public VerbsTransport {
  public:
    explicit VerbsHub(const VerbsOptions& options) : options_(options) {}
    ~VerbsHub() override { assert(shares_.empty()); }
    Result<void> open();

    Result<Membership> join(const SocketAddress& group) override;
    Result<Membership> join_any() override;
    bool has_joined(const SocketAddress& group) const override { return shares_.count(group) > 0; }
    bool has_room() const override {
        return !gone_ && !queue_->broken() && shares_.size() < max_memberships_;
    }
    Sent send(std::span<const Datagram> datagrams, const Outlet& to) override {
        revive();
        const VerbsTarget target = target_of(to.group);
        if (target.address != nullptr) return queue_->send(datagrams, target, counters_);
        ++counters_.send_errors;
        return {0, EADDRNOTAVAIL};
    }
    std::size_t receive(Nanoseconds, DeliverDatagram deliver) override {
        revive();
        const std::size_t taken = queue_->receive(local_, deliver, counters_);
        if (taken == 0 && ++quiet_turns_ == kQuietTurns) look_after();
        return taken;
    }
    int descriptor() const override { return queue_->descriptor(); }
    bool prepare_wait() override {
        look_after();
        // A failed queue pair delivers nothing more, so the caller may sleep.
        return queue_->broken() || queue_->prepare_wait();
    }
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
        // State of the latest join.
        bool answered = false;
        int status = 0;
        // The network has ended the group, for example because its subnet manager was replaced.
        bool lost = false;
        unsigned rejoins = 0;
        Nanoseconds rejoin_at{};
        ibv_ah_attr route{};
        Target target;
    };
    // An address handle that is no longer needed, kept until the requests posted with the handle are
    // complete.
    struct Retired {
        std::uint64_t until = 0;
        AddressOwner address;
    };

    void describe(const ibv_device_attr& limits, const ibv_port_attr& port);
    Result<void> join_new(const SocketAddress& group);
    Result<void> await(Share& share);
    // rdma-core's functions take non-const addresses.
    int request_join(const SocketAddress& group, Share& share) {
        SocketAddress address = group.with_scope(options_.interface.index);
        return rdma_join_multicast(id_.get(), address.data(), &share);
    }
    void forget(const SocketAddress& group) {
        SocketAddress address = group.with_scope(options_.interface.index);
        (void)rdma_leave_multicast(id_.get(), address.data());
    }
    Result<void> reach(const SocketAddress& group, Share& share);
    void look_after();
    void take_events();
    void note_answer(const rdma_cm_event& event);
    void revive() {
        if (!queue_->broken() || gone_) return;
        if (queue_->revive()) ++counters_.revivals;
    }
    void leave(const SocketAddress& group) override;
    VerbsTarget target_of(const SocketAddress& group);
    void retire(AddressOwner address) {
        free_retired();
        if (address) retired_.push_back({queue_->posted(), std::move(address)});
    }
    void free_retired() {
        if (retired_.empty()) return;
        queue_->reap();
        while (!retired_.empty() && retired_.front().until <= queue_->done()) retired_.pop_front();
    }

    const VerbsOptions options_;
    SocketAddress local_;
    std::string device_;
    bool ethernet_ = false, gone_ = false;
    std::size_t max_memberships_ = 0;
    CmChannelOwner events_;
    CmIdOwner id_;
    std::unique_ptr<VerbsQueue> queue_;
    std::unordered_map<SocketAddress, Share> shares_;
    // RoCE only: the route of a joined group, and handles of groups that are not joined.
    std::optional<ibv_ah_attr> route_;
    std::uint32_t route_key_ = 0;
    std::unordered_map<SocketAddress, Target> others_;
    std::list<Retired> retired_;
    unsigned quiet_turns_ = 0;
    MulticastCounters counters_;
};

Result<void> VerbsHub::open() {
    const auto& address = options_.address();
    if (!address || options_.ttl < 0 || options_.ttl > 255)
        return Error{EINVAL, fmt::format("interface {} has no IPv{} address", options_.interface.name,
                                         options_.family)};
    // rdma-core would bind an identifier with a loopback address to an arbitrary device.
    if (options_.interface.loopback) return Error{ENODEV, "the loopback interface is not an RDMA device"};
    events_.reset(rdma_create_event_channel());
    if (!events_) return system_error(errno, "cannot open the RDMA connection manager");
    const int flags = ::fcntl(events_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(events_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return system_error(errno, "cannot wait for the RDMA connection manager");
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_UDP) != 0)
        return system_error(errno, "cannot query the RDMA connection manager");
    id_.reset(id);
    SocketAddress own = address->with_port(0).with_scope(options_.interface.index);
    if (rdma_bind_addr(id, own.data()) != 0 || id->verbs == nullptr || id->pd == nullptr)
        return system_error(errno != 0 ? errno : ENODEV,
                            fmt::format("no RDMA device has the address of {}", options_.interface.name));
    ibv_device_attr limits{};
    ibv_port_attr port{};
    int code = ibv_query_device(id->verbs, &limits);
    if (code == 0) code = ibv_query_port(id->verbs, id->port_num, &port);
    if (code != 0) return system_error(code, "cannot query the limits of the RDMA device");
    queue_ = std::make_unique<VerbsQueue>(*id);
    if (auto opened = queue_->open(options_, limits, port); !opened) return opened;
    describe(limits, port);
    return {};
}

void VerbsHub::describe(const ibv_device_attr& limits, const ibv_port_attr& port) {
    ethernet_ = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    max_memberships_ = options_.max_memberships > 0 ? options_.max_memberships : SIZE_MAX;
    if (limits.max_mcast_grp > 0)
        max_memberships_ = std::min(max_memberships_, static_cast<std::size_t>(limits.max_mcast_grp));
    device_ = fmt::format("{}:{}, {}", ibv_get_device_name(id_->verbs->device), id_->port_num,
                          ethernet_ ? "RoCE" : "InfiniBand");
    // On RoCE the local address is the interface's address, on InfiniBand the port's GID.
    if (ethernet_) {
        local_ = *options_.address();
    } else {
        Gid gid{};
        static_assert(sizeof(ibv_gid) == sizeof gid);
        std::memcpy(gid.data(), &id_->route.addr.addr.ibaddr.sgid, sizeof gid);
        local_ = address_of(gid);
    }
    local_ = local_.with_port(port_of_queue_pair(queue_->number()));
}

Result<Membership> VerbsHub::join(const SocketAddress& group) {
    if ((group.family() != options_.address_family() && !is_assigned_group(group)) || !group.is_multicast() ||
        group.port() != 0)
        return Error{
            EINVAL, fmt::format("{} is not an IPv{} multicast group without a port", group, options_.family)};
    if (!has_joined(group)) {
        revive();
        if (gone_ || queue_->broken()) return Error{ENODEV, fmt::format("{} has failed", device_)};
        if (shares_.size() >= max_memberships_)
            return Error{ENOBUFS, fmt::format("{} multicast groups are joined, which is the limit of {}",
                                              shares_.size(), device_)};
        if (auto joined = join_new(group); !joined) return joined.error();
    }
    ++shares_[group].users;
    return Membership(*this, group);
}

// Joins without an address: the subnet manager creates a group and returns its address. Before this
// membership ends, the hub joins the group by its address, as the other members do, because it could not
// distinguish two memberships without an address.
Result<Membership> VerbsHub::join_any() {
    const SocketAddress any =
        options_.family == 4 ? SocketAddress(in_addr{}, 0) : SocketAddress(in6_addr{}, 0);
    if (!has_room()) return Error{ENOBUFS, fmt::format("{} can join no more groups", device_)};
    if (auto joined = join_new(any); !joined) return joined.error();
    Gid gid{};
    std::memcpy(gid.data(), &shares_[any].route.grh.dgid, gid.size());
    const SocketAddress chosen = address_of(gid);
    Result<Membership> membership = Error{
        EADDRNOTAVAIL,
        fmt::format("the subnet manager of {} chose {}, which cannot be joined by address", device_, chosen)};
    if (is_assigned_group(chosen)) membership = join(chosen);
    ++shares_[any].users;
    leave(any);
    return membership;
}

// Makes the address handle from the route in the answer to a join.
Result<void> VerbsHub::reach(const SocketAddress& group, Share& share) {
    if (ethernet_) share.route.grh.hop_limit = static_cast<std::uint8_t>(std::max(options_.ttl, 1));
    AddressOwner address(ibv_create_ah(id_->pd, &share.route));
    if (!address)
        return system_error(errno,
                            fmt::format("cannot create an address handle for {} on {}", group, device_));
    retire(std::exchange(share.target.address, std::move(address)));
    if (ethernet_) {
        route_ = share.route;
        route_key_ = share.target.key;
    }
    return {};
}

Result<void> VerbsHub::join_new(const SocketAddress& group) {
    Share& share = shares_[group];
    const auto give_up = [&](bool requested, Error error) {
        if (requested) forget(group);
        shares_.erase(group);
        return error;
    };
    if (request_join(group, share) != 0)
        return give_up(false, system_error(errno, fmt::format("cannot join {} on {}", group, device_)));
    if (auto answered = await(share); !answered)
        return give_up(true, Error{answered.error().code, fmt::format("cannot join {} on {}: {}", group,
                                                                      device_, answered.error().message)});
    if (auto reached = reach(group, share); !reached) return give_up(true, reached.error());
    if (auto other = others_.extract(group)) retire(std::move(other.mapped().address));
    return {};
}

// Waits for the answer to one join. Events for other groups may arrive meanwhile and are handled.
Result<void> VerbsHub::await(Share& share) {
    const Deadline end(options_.join_timeout_ms);
    for (;;) {
        take_events();
        if (share.answered) break;
        if (gone_) return Error{ENODEV, "the device was removed"};
        const int left = end.left_ms();
        if (left == 0) return Error{ETIMEDOUT, fmt::format("no response in {} ms", options_.join_timeout_ms)};
        pollfd ready{events_->fd, POLLIN, 0};
        if (::poll(&ready, 1, left) < 0 && errno != EINTR) return system_error(errno, "poll");
    }
    if (share.status != 0) return system_error(share.status, "refused");
    return {};
}

void VerbsHub::take_events() {
    rdma_cm_event* event = nullptr;
    for (std::size_t i = 0; i < kMaxEvents && rdma_get_cm_event(events_.get(), &event) == 0; ++i) {
        const auto what = event->event;
        if (what == RDMA_CM_EVENT_MULTICAST_JOIN || what == RDMA_CM_EVENT_MULTICAST_ERROR)
            note_answer(*event);
        if (what == RDMA_CM_EVENT_DEVICE_REMOVAL) gone_ = true;
        rdma_ack_cm_event(event);
    }
}

// Handles the answer to a join, or the end of a joined group. An event of an earlier join cannot reach a
// later join's share: the earlier join was then given up, and leaving discards its events. An error for a
// joined group, also during a repeated join, means that the network has ended the group.
void VerbsHub::note_answer(const rdma_cm_event& event) {
    for (auto& [group, share] : shares_) {
        if (&share != event.param.ud.private_data) continue;
        const bool joined = event.event == RDMA_CM_EVENT_MULTICAST_JOIN;
        share.answered = true;
        share.status = joined ? 0 : std::max(event.status < 0 ? -event.status : event.status, 1);
        if (joined) {
            share.route = event.param.ud.ah_attr;
            share.target.key = event.param.ud.qkey;
        }
        if (share.users == 0) continue;
        share.lost = !joined || !reach(group, share).ok();
        if (!share.lost) share.rejoins = 0;
    }
}

// Joins groups again after the network has ended them, without waiting for the answer. After the last attempt
// the member receives no more multicasts of the group, which the layers above detect.
void VerbsHub::look_after() {
    quiet_turns_ = 0;
    take_events();
    free_retired();
    if (gone_) return;
    for (auto& [group, share] : shares_) {
        if (!share.lost || share.rejoins == kMaxRejoins || monotonic_now() < share.rejoin_at) continue;
        share.rejoin_at = monotonic_now() + Nanoseconds::from_ms(kRejoinPauseMs << share.rejoins++);
        forget(group);
        share.lost = request_join(group, share) != 0;
    }
}

void VerbsHub::leave(const SocketAddress& group) {
    const auto share = shares_.find(group);
    assert(share != shares_.end());
    if (--share->second.users > 0) return;
    take_events();
    forget(group);
    retire(std::move(share->second.target.address));
    shares_.erase(share);
}

VerbsTarget VerbsHub::target_of(const SocketAddress& group) {
    if (const auto share = shares_.find(group); share != shares_.end())
        return {share->second.target.address.get(), share->second.target.key};
    if (!route_) return {};
    auto other = others_.find(group);
    if (other == others_.end()) {
        if (others_.size() >= kMaxOthers) {
            for (auto& [old, target] : others_) retire(std::move(target.address));
            others_.clear();
        }
        ibv_ah_attr route = *route_;
        const Gid gid = gid_of(group);
        std::memcpy(&route.grh.dgid, gid.data(), gid.size());
        AddressOwner address(ibv_create_ah(id_->pd, &route));
        if (!address) return {};
        other = others_.emplace(group, Target{std::move(address), route_key_}).first;
    }
    return {other->second.address.get(), other->second.key};
}

}  // namespace

Result<std::unique_ptr<VerbsTransport>> open_verbs(const VerbsOptions& options) {
    if (std::string why = why_no_rdma(); !why.empty()) return Error{ENODEV, why};
    auto hub = std::make_unique<VerbsHub>(options);
    if (auto opened = hub->open(); !opened) return opened.error();
    return std::unique_ptr<VerbsTransport>(std::move(hub));
}

}  // namespace mcastcoll::transport
