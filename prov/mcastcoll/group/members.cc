#include "group/members.h"

namespace mcastcoll::group {
namespace {

// How often at most a member is looked at because somebody greets in its place.
constexpr Nanoseconds kDoubtInterval = Nanoseconds::from_ms(1000);

}  // namespace

int Roster::fill(std::span<const wire::Peer> peers, Rank self, JoinPort& port) {
    members_.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
        members_[rank].watch_point = peers[rank].watch_point;
        if (rank_of(rank) == self) continue;
        auto peer = port.peer(peers[rank].private_address);
        if (!peer) return peer.error().code;
        members_[rank].peer = peer.value();
    }
    return 0;
}

std::vector<Outbox::Peer> Roster::peers_of(std::span<const std::uint32_t> ranks) const {
    std::vector<Outbox::Peer> peers;
    for (const std::uint32_t rank : ranks) peers.push_back(members_[rank].peer);
    return peers;
}

std::vector<Outbox::Peer> Roster::all_peers() const {
    std::vector<Outbox::Peer> peers;
    for (const Member& member : members_)
        if (member.peer != kNobody) peers.push_back(member.peer);
    return peers;
}

std::vector<Rank> Roster::ranks_at(Outbox::Peer peer) const {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
        if (members_[rank].peer == peer) ranks.push_back(rank_of(rank));
    return ranks;
}

bool Roster::doubt(Rank rank, Nanoseconds now) {
    Member& member = members_[index_of(rank)];
    if (now < member.doubt_at) return false;
    member.doubt_at = now + kDoubtInterval;
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
