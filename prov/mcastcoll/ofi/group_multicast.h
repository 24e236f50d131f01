// The multicast of one group over its station's sockets: which addresses it speaks to, chosen by rank 0 for
// the welcome and joined by everybody who leads a host; what is on its way to them; and from where members'
// datagrams may come.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/ranges.h"
#include "group/port.h"
#include "provider/settings.h"
#include "transport/joinable_transport.h"
#include "transport/multicast_queue.h"

namespace mcastcoll::ofi {

class Group;
class LiveStation;
struct JoinPlan;

class GroupMulticast final : public group::Multicast {
  public:
    GroupMulticast(LiveStation& station, const JoinPlan& plan) : station_(station), plan_(plan) {}

    int offer(wire::Welcome& welcome, const group::Guests& guests) override;
    void join(const wire::Welcome& welcome, const levels::Placement& placement) override;
    bool joined() const override { return !outlets_.empty(); }
    const std::string& why_not() const override { return why_not_; }
    std::string name() const override;
    bool can_send() const override { return !queue_.blocked(); }
    void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) override;
    void flush() override;
    void forget_payloads() override { queue_.forget_payloads(); }

    // It has an address of its own, that others may borrow parts of.
    bool own_address() const { return plan_of_addresses_ == engine::Plan::own && joined(); }
    const SocketAddress& address() const { return outlets_.front().group; }
    // The places of these members among those that listen, or nothing when one is none.
    std::optional<std::vector<std::uint32_t>> places_of(const std::vector<wire::ByteString>& members,
                                                        const levels::Placement& placement);

    // Who claims to be a member must send from that member's address, and from the port that its first valid
    // datagram came from.
    bool may_come_from(std::uint32_t rank, const SocketAddress& source);
    void came_from(std::uint32_t rank, const SocketAddress& source) { sources_[rank] = source; }
    std::uint64_t wrong_sources() const { return wrong_sources_; }

  private:
    Carrier choose_carrier(const group::Guests& guests, const levels::Placement& placement) const;
    void choose_addresses(wire::Welcome& welcome, const SocketAddress& own_address,
                          const group::Guests& guests, const levels::Placement& placement);
    void borrow(wire::Welcome& welcome, const SocketAddress& own_address, Group& parent,
                const std::vector<std::uint32_t>& ranks, bool room, const levels::Placement& placement);
    void explain_choice(const Group& parent, const engine::PlanChoice& choice) const;

    LiveStation& station_;
    const JoinPlan& plan_;
    engine::Plan plan_of_addresses_ = engine::Plan::own;
    std::vector<Outlet> outlets_;  // one for each range of ranks; none without multicast
    Membership membership_;        // of this member's own range
    Membership offered_;           // of the address that this member has offered, until it has joined
    std::string why_not_;
    std::vector<SocketAddress> sources_;  // of members' multicasts, by rank; port 0 until a probe told it
    std::uint64_t wrong_sources_ = 0;
    std::unordered_map<std::string, std::uint32_t> place_by_address_;  // made when first asked for
    MulticastQueue queue_;
    std::size_t payload_bytes_ = 0;
    bool send_error_told_ = false;
};

}  // namespace mcastcoll::ofi
