#include "group/members.h"

namespace mcastcoll::group {
namespace {

// How often at most a member is looked at because somebody greets in its place.
constexpr Nanoseconds kDoubtInterval = Nanoseconds::from_ms(1000);

}  // namespace

void Roster::fill(std::span<const wire::Peer> peers, Rank self) {
    self_ = self;
    std::size_t address_bytes = 0, point_bytes = 0;
    for (const wire::Peer& peer : peers) {
        address_bytes += peer.private_address.size();
        point_bytes += peer.watch_point.size();
    }
    addresses_.reserve(peers.size(), address_bytes);
    watch_points_.reserve(peers.size(), point_bytes);
    for (const wire::Peer& peer : peers) {
        addresses_.add(peer.private_address);
        watch_points_.add(peer.watch_point);
    }
}

std::optional<Outbox::Peer> Roster::peer(std::uint32_t rank, JoinPort& port) {
    if (rank_of(rank) == self_) return {};
    auto known = peers_.find(rank);
    if (known == peers_.end()) {
        const auto reached = port.peer(address(rank));
        if (reached)
            ranks_.emplace(reached.value(), rank_of(rank));
        else
            unreached_.push_back({rank_of(rank), reached.error().code, reached.error().message});
        known = peers_.emplace(rank, reached ? reached.value() : kNobody).first;
    }
    return known->second == kNobody ? std::nullopt : std::optional(known->second);
}

std::vector<Outbox::Peer> Roster::peers_of(std::span<const std::uint32_t> ranks, JoinPort& port) {
    std::vector<Outbox::Peer> peers;
    for (const std::uint32_t rank : ranks)
        if (const auto reached = peer(rank, port)) peers.push_back(*reached);
    return peers;
}

std::vector<Rank> Roster::ranks_at(Outbox::Peer peer) const {
    std::vector<Rank> ranks;
    const auto [from, to] = ranks_.equal_range(peer);
    for (auto one = from; one != to; ++one) ranks.push_back(one->second);
    return ranks;
}

bool Roster::doubt(Rank rank, Nanoseconds now) {
    Nanoseconds& look_again_at = look_again_at_[rank];
    if (now < look_again_at) return false;
    look_again_at = now + kDoubtInterval;
    return true;
}

std::vector<std::uint32_t> whom_to_tell(const levels::Placement& placement, Rank lost, bool joined) {
    const auto contains = [](const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
        return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    };
    std::vector<std::uint32_t> whom;
    if (placement.leads_segment()) whom = placement.segments();
    if (const auto dead = static_cast<std::uint32_t>(index_of(lost)); dead < placement.members()) {
        const bool engine = placement.leads_host() && placement.segment().size() > 1;
        const bool led_segment = contains(placement.segments(), dead);
        const bool led_host_here = placement.host_leader(dead) == dead &&
                                   placement.segment_of(dead) == placement.segment_of(placement.self());
        if (led_segment) whom = placement.segments();
        for (std::uint32_t rank = 0; rank < placement.members(); ++rank) {
            if (engine && contains(placement.segment(), rank)) continue;
            if (placement.host_leader(rank) == dead ||
                (led_segment && placement.segment_of(rank) == placement.segment_of(dead)) ||
                (led_host_here && contains(placement.segment(), rank)))
                whom.push_back(rank);
        }
    }
    if (!joined) {
        whom.push_back(placement.host_leader(placement.self()));
        whom.push_back(placement.segment().front());
        if (placement.leads_host()) whom.insert(whom.end(), placement.host().begin(), placement.host().end());
    }
    std::sort(whom.begin(), whom.end());
    whom.erase(std::unique(whom.begin(), whom.end()), whom.end());
    std::erase(whom, placement.self());
    return whom;
}

}  // namespace mcastcoll::group
