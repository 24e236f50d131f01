// The multicast of one group over its endpoint's sockets. Holds the addresses, the send queue, and the
// permitted source addresses of members' datagrams. Rank 0 chooses the addresses and sends them in the
// welcome (the message that forms the group). The leaders of hosts join the addresses.
#pragma once

#include <functional>
#include <map>

#include "ports/multicast_sockets.h"
#include "transport/multicast_queue.h"

namespace mcastcoll::ports {

// A part of a group's multicast address that another group may borrow. `ranks`: the positions of the
// borrowing group's members in the lending group.
struct BorrowedAddress {
    transport::SocketAddress address;
    GroupKey key{};
    std::uint32_t places = 0;  // number of positions in the lending group
    std::vector<std::uint32_t> ranks;
    std::string name;  // for the log
};

class GroupMulticast final : public group::Multicast {
  public:
    // Finds an address to borrow for these members, given by their inner addresses.
    using Lender = std::function<std::optional<BorrowedAddress>(const std::vector<wire::ByteString>&)>;

    // wanted: the address scheme to use regardless of its cost. members: inner addresses by rank; they must
    // outlive this object.
    GroupMulticast(MulticastSockets& sockets, std::optional<engine::AddressScheme> wanted,
                   std::string group_name, std::span<const wire::ByteString> members, Lender lender)
        : sockets_(sockets),
          wanted_(wanted),
          group_name_(std::move(group_name)),
          members_(members),
          lender_(std::move(lender)) {}

    int offer(wire::Welcome& welcome, const group::Hellos& hellos) override;
    void join(const wire::Welcome& welcome, const levels::Placement& placement) override;
    bool joined() const override { return !outlets_.empty(); }
    const std::string& why_not() const override { return why_not_; }
    std::string name() const override;
    bool can_send() const override { return !queue_.blocked(); }
    void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) override;
    void flush() override;
    void forget_payloads() override { queue_.forget_payloads(); }

    // True if the group has an address of its own, of which other groups may borrow parts.
    bool own_address() const { return address_scheme_ == engine::AddressScheme::own && joined(); }
    // Returns the part of this group's address that a group of these members may borrow. Empty if one of the
    // members does not listen to the address.
    std::optional<BorrowedAddress> share_address(const std::vector<wire::ByteString>& members,
                                                 const levels::Placement& placement, GroupKey key);

    // Whether a datagram of member `rank` may come from this source: it must be the member's address and,
    // once the first valid datagram has arrived, the port of that datagram.
    bool may_come_from(std::uint32_t rank, const transport::SocketAddress& source);
    // Called after a valid datagram. The first one sets the member's port.
    void came_from(std::uint32_t rank, const transport::SocketAddress& source) {
        if (sources_[rank].port() == 0) sources_[rank] = source;
    }
    std::uint64_t wrong_sources() const { return wrong_sources_; }

  private:
    provider::Carrier choose_carrier(const group::Hellos& hellos, const levels::Placement& placement) const;
    void choose_addresses(wire::Welcome& welcome, const transport::SocketAddress& own_address,
                          const group::Hellos& hellos, const levels::Placement& placement);
    void borrow(wire::Welcome& welcome, const transport::SocketAddress& own_address,
                const BorrowedAddress& borrowed, bool room, const levels::Placement& placement);
    void explain_choice(const BorrowedAddress& borrowed, const engine::AddressChoice& choice) const;

    MulticastSockets& sockets_;
    const std::optional<engine::AddressScheme> wanted_;
    const std::string group_name_;
    const std::span<const wire::ByteString> members_;
    const Lender lender_;
    engine::AddressScheme address_scheme_ = engine::AddressScheme::own;
    // One for each range of ranks; empty without multicast.
    std::vector<transport::Outlet> outlets_;
    transport::Membership membership_;  // of the address of this member's own range
    // Of the address that this member has offered as rank 0. Held until the member has joined the address.
    transport::Membership offered_;
    std::string why_not_;
    // Source addresses of the members' multicasts, by rank. The port is 0 until a probe has arrived.
    std::vector<transport::SocketAddress> sources_;
    std::uint64_t wrong_sources_ = 0;
    std::map<wire::ByteString, std::uint32_t> place_by_address_;  // filled at the first use
    transport::MulticastQueue queue_;
    std::size_t payload_bytes_ = 0;
    bool send_error_logged_ = false;
};

}  // namespace mcastcoll::ports
