// Which multicast addresses a group speaks to: chosen by rank 0 for the welcome, joined by everybody.
#include "transport/group_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "group/welcome.h"
#include "ofi/group.h"
#include "ofi/live_station.h"

namespace mcastcoll::ofi {
namespace {

std::string text_of(const wire::ByteString& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

bool Group::can_lend() const {
    return engine_ && joined_ && !ended_ && placement_->sites().size() == 1 &&
           address_plan_ == engine::Plan::own && !outlets_.empty() &&
           engine_->phase() == engine::Phase::active && engine_->graph().hearing_count() > 0;
}

std::optional<std::vector<std::uint32_t>> Group::ranks_of(const std::vector<wire::ByteString>& members) {
    if (members.size() > plan_.members.size()) return {};
    if (rank_by_address_.empty())
        for (std::uint32_t place = 0; place < placement_->segment().size(); ++place)
            rank_by_address_.emplace(text_of(plan_.members[placement_->segment()[place]]), place);
    std::vector<std::uint32_t> ranks;
    ranks.reserve(members.size());
    for (const wire::ByteString& member : members) {
        const auto found = rank_by_address_.find(text_of(member));
        if (found == rank_by_address_.end()) return {};
        ranks.push_back(found->second);
    }
    return ranks;
}

Carrier Group::choose_carrier(const levels::Placement& placement) const {
    const group::Guests& guests = join_.guests();
    if (guests.front()->verbs.datagram_bytes == 0 || placement.hosts() == 1) return Carrier::udp;
    const group::Hindrance hindrance = group::hindrance_to_verbs(guests, placement);
    if (hindrance.why == nullptr) {
        station_.log(Level::info, "{}: multicasts go over verbs", name());
        return Carrier::verbs;
    }
    station_.log(Level::info, "{}: over UDP, not over verbs: rank {} {}", name(), hindrance.rank,
                 hindrance.why);
    return Carrier::udp;
}

// Rank 0 alone decides, and everybody reads it in the welcome: members may know different parents. Only the
// leaders of hosts listen. Several sites have an address of their own: they do not hear each other.
void Group::choose_addresses(wire::Welcome& welcome, const SocketAddress& own_address,
                             const levels::Placement& placement) {
    welcome.plan = static_cast<std::uint8_t>(engine::Plan::own);
    welcome.range_of.assign(plan_.members.size(), 0);
    const bool verbs = own_address.port() == 0;
    if ((!verbs && join_.guests().front()->datagram_bytes == 0) ||
        placement.hosts() == placement.sites().size())
        return;
    const group::Guests& guests = join_.guests();
    const std::vector<std::uint32_t>& leaders = placement.segment();
    bool room = true;
    std::vector<wire::ByteString> listeners;
    for (const std::uint32_t rank : leaders) {
        room = room && (verbs || guests[rank]->datagram_bytes == 0 || guests[rank]->room != 0);
        listeners.push_back(plan_.members[rank]);
    }
    std::vector<std::uint32_t> ranks;
    Group* parent =
        placement.sites().size() > 1 ? nullptr : station_.find_parent(plan_.parent, listeners, ranks);
    // What is borrowed has to be of the same kind, and only RoCE sends to groups that are not joined.
    if (parent != nullptr && ((parent->outlets_.front().group.port() == 0) != verbs ||
                              (verbs && !station_.verbs_sends_anywhere())))
        parent = nullptr;
    if (parent == nullptr) {
        welcome.group_addresses = {encode_address(own_address)};
        return;
    }
    std::vector<std::uint32_t> subset = ranks;
    std::sort(subset.begin(), subset.end());
    const auto parents = static_cast<std::uint32_t>(parent->placement_->segment().size());
    const engine::PlanChoice choice = engine::choose_plan(subset, parents, room, station_.settings().plan);
    welcome.plan = static_cast<std::uint8_t>(choice.plan);
    explain_choice(*parent, choice);
    const SocketAddress& lent = parent->outlets_.front().group;
    switch (choice.plan) {
        case engine::Plan::own:
            welcome.group_addresses = {encode_address(own_address)};
            return;
        case engine::Plan::parent:
            welcome.group_addresses = {encode_address(lent)};
            return;
        case engine::Plan::chained:
        case engine::Plan::tree:
            break;
    }
    const int family = lent.family() == AF_INET ? 4 : 6;
    for (std::size_t i = 0; i < choice.cover.size(); ++i) {
        const engine::AlignedRange& range = choice.cover[i];
        welcome.group_addresses.push_back(
            encode_address(range_group_address(family, parent->key_, range.level, range.index, lent.port())));
        for (std::size_t place = 0; place < ranks.size(); ++place)
            if (ranks[place] >= range.first() && ranks[place] < range.end(parents))
                welcome.range_of[leaders[place]] = static_cast<std::uint8_t>(i);
    }
}

void Group::explain_choice(const Group& parent, const engine::PlanChoice& choice) {
    if (choice.scarce)
        return station_.log(Level::info,
                            "{}: part of {}: takes {}, because a member can join no further address", name(),
                            parent.name(), engine::name_of(choice.plan));
    station_.log(Level::info,
                 "{}: part of {}, {} ranges: takes {} (costs: parent's {:.1f}, chained {:.1f}, tree {:.1f}, "
                 "own {:.1f})",
                 name(), parent.name(), choice.cover.size(), engine::name_of(choice.plan),
                 choice.costs.parent, choice.costs.chained, choice.costs.tree, choice.costs.own);
}

void Group::join_address(const wire::Welcome& welcome) {
    address_plan_ = static_cast<engine::Plan>(welcome.plan);
    if (welcome.group_addresses.empty()) {
        no_multicast_ = "rank 0 has no multicast";
        return;
    }
    const std::size_t self = index_of(plan_.self);
    std::vector<Outlet> outlets;
    for (const wire::ByteString& encoded : welcome.group_addresses) {
        const auto address = decode_address(encoded);
        if (!address) {
            no_multicast_ = "the group's address is not understood";
            return;
        }
        outlets.push_back({*address, false});
    }
    // Only for a neighbour on this host does the kernel have to hand our multicasts back to it, and to us.
    for (const std::uint32_t rank : placement_->segment())
        if (rank != self && welcome.peers[rank].multicast_source == welcome.peers[self].multicast_source)
            outlets[welcome.range_of[rank]].loop = true;
    auto joined = station_.join_address(outlets[welcome.range_of[self]].group);
    if (!joined) {
        no_multicast_ = joined.error().message;
        return;
    }
    membership_ = std::move(joined).value();
    outlets_ = std::move(outlets);
}

std::string Group::lane_name() const {
    if (outlets_.empty()) return "(elsewhere)";
    std::string names;
    for (const Outlet& outlet : outlets_) names += (names.empty() ? "" : ", ") + outlet.group.to_string();
    return outlets_.size() == 1
               ? names
               : fmt::format("{}: {}", address_plan_ == engine::Plan::tree ? "tree" : "chain", names);
}

}  // namespace mcastcoll::ofi
