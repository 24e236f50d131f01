#include "group/roster.h"

namespace mcastcoll::group {
namespace {

// How often at most a member is looked at because somebody greets in its place.
constexpr Nanoseconds kDoubtInterval = Nanoseconds::from_ms(1000);

}  // namespace

int Roster::fill(std::span<const wire::Peer> peers, Rank self, JoinPort& port) {
    members_.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
        if (rank_of(rank) == self) continue;
        auto peer = port.peer(peers[rank].private_address);
        if (!peer) return peer.error().code;
        members_[rank].peer = peer.value();
        members_[rank].watch_point = peers[rank].watch_point;
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

}  // namespace mcastcoll::group
