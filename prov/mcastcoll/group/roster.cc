#include "group/roster.h"

namespace mcastcoll::group {
namespace {

// Shortest interval between checks of a member for whose rank another process sends hellos.
constexpr Nanoseconds kSuspicionInterval = Nanoseconds::from_ms(1000);

}  // namespace

std::optional<Outbox::Peer> Roster::peer(std::uint32_t rank, JoinPort& port) {
    if (rank_of(rank) == self_) return {};
    auto known = peers_.find(rank);
    if (known == peers_.end()) {
        const auto reached = port.peer(address(rank));
        if (reached)
            ranks_.emplace(reached.value(), rank_of(rank));
        else
            unreached_.push_back({rank_of(rank), reached.error().code, reached.error().message});
        known = peers_.emplace(rank, reached ? reached.value() : kUnreachable).first;
    }
    return known->second == kUnreachable ? std::nullopt : std::optional(known->second);
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

bool Roster::suspect(Rank rank, Nanoseconds now) {
    Nanoseconds& look_again_at = look_again_at_[rank];
    if (now < look_again_at) return false;
    look_again_at = now + kSuspicionInterval;
    return true;
}

}  // namespace mcastcoll::group
