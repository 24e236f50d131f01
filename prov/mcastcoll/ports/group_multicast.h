// The multicast of one group over its endpoint's sockets: which addresses it speaks to, chosen by rank 0 for
// the welcome and joined by everybody who leads a host; what is on its way to them; and from where members'
// datagrams may come.
#pragma once

#include <functional>
#include <map>

#include "ports/multicast_sockets.h"
#include "transport/multicast_queue.h"

namespace mcastcoll::ofi {

// Another group's address, of which parts can be borrowed: the places of those who borrow, in that group.
struct Loan {
    SocketAddress address;
    GroupKey key{};
    std::uint32_t places = 0;  // that it has
    std::vector<std::uint32_t> ranks;
    std::string name;  // for the log
};

class GroupMulticast final : public group::Multicast {
  public:
    // Who lends to these members, by their inner addresses.
    using Lender = std::function<std::optional<Loan>(const std::vector<wire::ByteString>&)>;

    // wanted: how to borrow, whatever it costs. members: inner addresses by rank, which outlive this.
    GroupMulticast(MulticastSockets& sockets, std::optional<engine::Plan> wanted, std::string group_name,
                   std::span<const wire::ByteString> members, Lender lender)
        : sockets_(sockets),
          wanted_(wanted),
          group_name_(std::move(group_name)),
          members_(members),
          lender_(std::move(lender)) {}

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
    // What these members can borrow of it, or nothing when one of them does not listen to it.
    std::optional<Loan> lend(const std::vector<wire::ByteString>& members, const levels::Placement& placement,
                             GroupKey key);

    // Who claims to be a member must send from that member's address, and from the port that its first valid
    // datagram came from.
    bool may_come_from(std::uint32_t rank, const SocketAddress& source);
    void came_from(std::uint32_t rank, const SocketAddress& source) {
        if (sources_[rank].port() == 0) sources_[rank] = source;
    }
    std::uint64_t wrong_sources() const { return wrong_sources_; }

  private:
    Carrier choose_carrier(const group::Guests& guests, const levels::Placement& placement) const;
    void choose_addresses(wire::Welcome& welcome, const SocketAddress& own_address,
                          const group::Guests& guests, const levels::Placement& placement);
    void borrow(wire::Welcome& welcome, const SocketAddress& own_address, const Loan& loan, bool room,
                const levels::Placement& placement);
    void explain_choice(const Loan& loan, const engine::PlanChoice& choice) const;

    MulticastSockets& sockets_;
    const std::optional<engine::Plan> wanted_;
    const std::string group_name_;
    const std::span<const wire::ByteString> members_;
    const Lender lender_;
    engine::Plan plan_of_addresses_ = engine::Plan::own;
    std::vector<Outlet> outlets_;  // one for each range of ranks; none without multicast
    Membership membership_;        // of this member's own range
    Membership offered_;           // of the address that this member has offered, until it has joined
    std::string why_not_;
    std::vector<SocketAddress> sources_;  // of members' multicasts, by rank; port 0 until a probe told it
    std::uint64_t wrong_sources_ = 0;
    std::map<wire::ByteString, std::uint32_t> place_by_address_;  // made when first asked for
    MulticastQueue queue_;
    std::size_t payload_bytes_ = 0;
    bool send_error_told_ = false;
};

}  // namespace mcastcoll::ofi
