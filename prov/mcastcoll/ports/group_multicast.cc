#include "ports/group_multicast.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "engine/effects.h"
#include "provider/log.h"
#include "transport/socket_address.h"
#include "wire/protection.h"

namespace mcastcoll::ports {

static_assert(transport::MulticastQueue::kMax <= engine::kSentTogether &&
                  transport::MulticastQueue::kMax <= wire::Protection::kSealedAtOnce,
              "payloads are where they were when a full queue is flushed");

int GroupMulticast::offer(wire::Welcome& welcome, const group::Hellos& hellos) {
    const levels::Placement placement = group::placement_of(welcome);
    provider::Carrier carrier = choose_carrier(hellos, placement);
    auto made = sockets_.new_identity(carrier);
    if (!made && carrier == provider::Carrier::verbs) {
        provider::log_line(provider::Level::info, "{}: multicasts go over UDP instead of verbs: {}",
                           group_name_, made.error().message);
        carrier = provider::Carrier::udp;
        made = sockets_.new_identity(carrier);
    }
    if (!made) return made.error().code;
    const GroupIdentity& identity = made.value();
    welcome.key = identity.key;
    welcome.epoch = identity.epoch;
    group::fit_datagrams(welcome, hellos, placement, carrier == provider::Carrier::verbs);
    choose_addresses(welcome, identity.address, hellos, placement);
    offered_ = std::move(made.value().held);
    return 0;
}

provider::Carrier GroupMulticast::choose_carrier(const group::Hellos& hellos,
                                                 const levels::Placement& placement) const {
    if (hellos.front().verbs.datagram_bytes == 0 || placement.hosts() == 1) return provider::Carrier::udp;
    const group::Hindrance hindrance = group::hindrance_to_verbs(hellos, placement);
    if (hindrance.why == nullptr) {
        provider::log_line(provider::Level::info, "{}: multicasts go over verbs", group_name_);
        return provider::Carrier::verbs;
    }
    provider::log_line(provider::Level::info, "{}: multicasts go over UDP instead of verbs: rank {} {}",
                       group_name_, hindrance.rank, hindrance.why);
    return provider::Carrier::udp;
}

// Rank 0 alone chooses the addresses, and the welcome carries them to all members, because members may have
// different parent groups. Only the leaders of hosts listen. Each of several segments has its own address,
// since segments do not receive each other's multicasts.
void GroupMulticast::choose_addresses(wire::Welcome& welcome, const transport::SocketAddress& own_address,
                                      const group::Hellos& hellos, const levels::Placement& placement) {
    welcome.address_scheme = static_cast<std::uint8_t>(engine::AddressScheme::own);
    welcome.range_of.assign(members_.size(), 0);
    const bool verbs = own_address.port() == 0;
    if ((!verbs && hellos.front().datagram_bytes == 0) || placement.hosts() == placement.segments().size())
        return;
    bool room = true;
    std::vector<wire::ByteString> listeners;
    for (const std::uint32_t rank : placement.segment()) {
        room = room && (verbs || hellos[rank].datagram_bytes == 0 || hellos[rank].room != 0);
        listeners.push_back(members_[rank]);
    }
    std::optional<BorrowedAddress> borrowed;
    if (placement.segments().size() == 1) borrowed = lender_(listeners);
    // A borrowed address must be of the same transport, and only RoCE can send to groups that are not joined.
    if (borrowed && ((borrowed->address.port() == 0) != verbs || (verbs && !sockets_.verbs_sends_anywhere())))
        borrowed.reset();
    if (!borrowed)
        welcome.group_addresses = {encode_address(own_address)};
    else
        borrow(welcome, own_address, *borrowed, room, placement);
}

void GroupMulticast::borrow(wire::Welcome& welcome, const transport::SocketAddress& own_address,
                            const BorrowedAddress& borrowed, bool room, const levels::Placement& placement) {
    std::vector<std::uint32_t> subset = borrowed.ranks;
    std::sort(subset.begin(), subset.end());
    const engine::AddressChoice choice = engine::choose_scheme(subset, borrowed.places, room, wanted_);
    welcome.address_scheme = static_cast<std::uint8_t>(choice.scheme);
    explain_choice(borrowed, choice);
    const transport::SocketAddress& shared_address = borrowed.address;
    if (choice.scheme == engine::AddressScheme::own || choice.scheme == engine::AddressScheme::parent) {
        welcome.group_addresses = {
            encode_address(choice.scheme == engine::AddressScheme::own ? own_address : shared_address)};
        return;
    }
    const int family = shared_address.family() == AF_INET ? 4 : 6;
    for (std::size_t i = 0; i < choice.cover.size(); ++i) {
        const engine::AlignedRange& range = choice.cover[i];
        welcome.group_addresses.push_back(encode_address(transport::range_group_address(
            family, borrowed.key, range.level, range.index, shared_address.port())));
        for (std::size_t place = 0; place < borrowed.ranks.size(); ++place)
            if (borrowed.ranks[place] >= range.first() && borrowed.ranks[place] < range.end(borrowed.places))
                welcome.range_of[placement.segment()[place]] = static_cast<std::uint8_t>(i);
    }
}

void GroupMulticast::explain_choice(const BorrowedAddress& borrowed,
                                    const engine::AddressChoice& choice) const {
    if (choice.scarce)
        return provider::log_line(
            provider::Level::info,
            "{}: is part of {} and uses address scheme {}, because a member can join no "
            "more multicast addresses",
            group_name_, borrowed.name, engine::name_of(choice.scheme));
    provider::log_line(provider::Level::info,
                       "{}: is part of {}, {} ranges of its ranks, and uses address scheme {} (costs: parent "
                       "{:.1f}, chained {:.1f}, tree {:.1f}, own {:.1f})",
                       group_name_, borrowed.name, choice.cover.size(), engine::name_of(choice.scheme),
                       choice.costs.parent, choice.costs.chained, choice.costs.tree, choice.costs.own);
}

void GroupMulticast::join(const wire::Welcome& welcome, const levels::Placement& placement) {
    sources_.resize(welcome.peers.size());
    for (std::size_t rank = 0; rank < sources_.size(); ++rank)
        if (auto source = decode_address(welcome.peers[rank].multicast_source))
            sources_[rank] = source->with_port(0);
    address_scheme_ = static_cast<engine::AddressScheme>(welcome.address_scheme);
    payload_bytes_ = welcome.fragment_bytes;
    if (welcome.group_addresses.empty()) {
        why_not_ = "rank 0 has no multicast";
        return;
    }
    const std::uint32_t self = placement.self();
    std::vector<transport::Outlet> outlets;
    for (const wire::ByteString& encoded : welcome.group_addresses) {
        const auto address = decode_address(encoded);
        if (!address) {
            why_not_ = "the multicast address in the welcome is invalid";
            return;
        }
        outlets.push_back({*address, false});
    }
    // Multicast loopback is needed only if another leader runs on this host. The kernel then also delivers
    // this member's own multicasts back.
    for (const std::uint32_t rank : placement.segment())
        if (rank != self && welcome.peers[rank].multicast_source == welcome.peers[self].multicast_source)
            outlets[welcome.range_of[rank]].loop = true;
    auto joined = sockets_.join(outlets[welcome.range_of[self]].group);
    if (!joined) {
        why_not_ = joined.error().message;
        return;
    }
    membership_ = std::move(joined).value();
    offered_ = {};
    outlets_ = std::move(outlets);
}

std::string GroupMulticast::name() const {
    if (outlets_.empty()) return "(elsewhere)";
    std::string names;
    for (const transport::Outlet& outlet : outlets_)
        names += (names.empty() ? "" : ", ") + outlet.group.to_string();
    return outlets_.size() == 1
               ? names
               : fmt::format("{}: {}", address_scheme_ == engine::AddressScheme::tree ? "tree" : "chain",
                             names);
}

void GroupMulticast::send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) {
    queue_.add(header, payload, range);
    if (queue_.full()) flush();
}

void GroupMulticast::flush() {
    const int error = queue_.flush(sockets_.transport(), outlets_, payload_bytes_);
    // A datagram cannot be sent at all. The receivers treat it as lost and request a repair.
    if (error == 0 || send_error_logged_) return;
    provider::log_line(
        provider::Level::warn,
        "{}: cannot multicast a datagram: {}: the receivers request it as if it were lost; more "
        "such errors of this group are not logged",
        group_name_, std::strerror(error));
    send_error_logged_ = true;
}

std::optional<BorrowedAddress> GroupMulticast::share_address(const std::vector<wire::ByteString>& members,
                                                             const levels::Placement& placement,
                                                             GroupKey key) {
    if (members.size() > members_.size()) return {};
    if (place_by_address_.empty())
        for (std::uint32_t place = 0; place < placement.segment().size(); ++place)
            place_by_address_.emplace(members_[placement.segment()[place]], place);
    const auto listening = static_cast<std::uint32_t>(placement.segment().size());
    BorrowedAddress borrowed{outlets_.front().group, key, listening, {}, group_name_};
    borrowed.ranks.reserve(members.size());
    for (const wire::ByteString& member : members) {
        const auto found = place_by_address_.find(member);
        if (found == place_by_address_.end()) return {};
        borrowed.ranks.push_back(found->second);
    }
    return borrowed;
}

bool GroupMulticast::may_come_from(std::uint32_t rank, const transport::SocketAddress& source) {
    const transport::SocketAddress& known = sources_[rank];
    if (known.same_host(source) && (known.port() == 0 || known.port() == source.port())) return true;
    ++wrong_sources_;
    return false;
}

}  // namespace mcastcoll::ports
