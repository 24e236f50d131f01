#include "levels/site_level.h"

#include <algorithm>
#include <unordered_set>

namespace mcastcoll::levels {
namespace {

// Longest vector that two segments exchange. Longer vectors are limited by bandwidth, and are combined in
// place.
constexpr std::size_t kMaxExchanged = 16384;

// Numbers of the messages between two members in one operation: a vector towards the root, a message or
// result away from it.
constexpr std::size_t kIn = 0, kOut = 1;

MessageConfig in_place(SiteConfig config, const Placement& placement) {
    config.self = placement.self();
    config.members = placement.members();
    return config;
}

}  // namespace

SiteLevel::SiteLevel(const Placement& placement, const SiteConfig& config)
    : MessageLevel(
          in_place(config, placement),
          {.piece = wire::Kind::piece, .grant = wire::Kind::grant, .message_bits = 1, .grants_early = true}),
      placement_(placement),
      algorithm_(config.algorithm),
      within_algorithm_(config.within_algorithm) {}

void SiteLevel::start(Nanoseconds now) {
    connected_ = !placement_.leads_segment() || placement_.segments().size() == 1;
    if (!connected_ && !is_first()) send_hello_to_first(now);
}

void SiteLevel::send_hello_to_first(Nanoseconds now) {
    send_hello(peer(placement_.segments().front()));
    hello_at_ = now + hello_interval_;
    hello_interval_ = std::min(Nanoseconds{2 * hello_interval_.value}, kMaxHelloInterval);
}

void SiteLevel::on_grant(Peer& from) {
    if (!placement_.leads_segment()) return;
    from.has_granted = true;
    if (!is_first()) {
        if (from.rank == placement_.segments().front()) connected_ = true;
        return;
    }
    const auto& leaders = placement_.segments();
    for (const std::uint32_t leader : leaders)
        if (leader != placement_.self() && !peer(leader).has_granted) return;
    if (connected_) {
        // The peer repeats its hello: the answer may have come before the peer knew the group.
        if (from.used == 0 && from.sent == 0) send_hello(from);
        return;
    }
    connected_ = true;
    for (const std::uint32_t leader : leaders)
        if (leader != placement_.self()) send_hello(peer(leader));
}

// The participants: the root first, or the first segment's leader, then the leaders of the other segments.
SiteLevel::Neighbours SiteLevel::neighbours(const LevelOperation& operation) const {
    const bool rooted = operation.kind == Kind::broadcast || operation.kind == Kind::reduce;
    std::vector<std::uint32_t> nodes;
    if (rooted) nodes.push_back(index_of(operation.root));
    for (const std::uint32_t leader : placement_.segments()) {
        const bool with_root =
            operation.kind == Kind::broadcast &&
            placement_.segment_of(leader) == placement_.segment_of(index_of(operation.root));
        if (!(rooted && (leader == index_of(operation.root) || with_root))) nodes.push_back(leader);
    }
    // The first node of each site, and the nodes of this member's own site.
    std::vector<std::uint32_t> heads, own;
    std::unordered_set<std::uint32_t> sites;
    for (const std::uint32_t node : nodes) {
        const std::uint32_t site = placement_.site_of(node);
        if (sites.insert(site).second) heads.push_back(node);
        if (site == placement_.site_of(placement_.self())) own.push_back(node);
    }
    Neighbours result;
    result.is_root = nodes.front() == placement_.self();
    connect(heads, algorithm_, result);
    connect(own, within_algorithm_, result);
    return result;
}

// Adds this member's neighbours in one tree, if this member is a node of the tree.
void SiteLevel::connect(const std::vector<std::uint32_t>& nodes, const topology::Algorithm& algorithm,
                        Neighbours& result) const {
    const auto self =
        static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), placement_.self()) - nodes.begin());
    if (self == nodes.size()) return;
    if (self > 0) result.parent = nodes[algorithm.parent_of(self)];
    for (std::size_t node = 1; node < nodes.size(); ++node)
        if (algorithm.parent_of(node) == self) result.children.push_back(nodes[node]);
}

bool SiteLevel::exchanges(const LevelOperation& operation) const {
    const bool for_all = operation.kind == Kind::barrier || operation.kind == Kind::allreduce;
    return for_all && placement_.segments().size() == 2 &&
           operation.bytes <= std::min<std::size_t>(kMaxExchanged, piece_bytes_);
}

// Both segment leaders combine the first segment's vector with the second's in this order, so the results are
// bitwise equal. The sent vector is a copy, since the result may overwrite the input.
void SiteLevel::make_exchange(const LevelOperation& operation, Schedule& schedule) const {
    std::byte* own = schedule.room(operation.bytes);
    move_block(own, operation.input, operation.bytes);
    for (const std::uint32_t leader : placement_.segments()) {
        schedule.receive(leader, kIn, operation.buffer, operation.bytes);
        schedule.receives.back().own = own;
        if (leader != placement_.self()) schedule.send(leader, kIn, 0, own, operation.bytes);
    }
    schedule.receives.back().combined = true;
}

// Vectors go from the children to the parent; a message or result goes from the parent to the children.
void SiteLevel::make_tree(const LevelOperation& operation, Schedule& schedule) const {
    const Neighbours near = neighbours(operation);
    if (operation.kind != Kind::broadcast && near.children.empty() && !near.is_root) {
        schedule.send(near.parent, kIn, 0, operation.input, operation.bytes);
    } else if (operation.kind != Kind::broadcast) {
        if (placement_.leads_segment()) {
            schedule.receive(placement_.self(), kIn, operation.buffer, operation.bytes);
            schedule.receives.back().own = operation.input;
        }
        for (const std::uint32_t child : near.children) {
            const bool first = schedule.receives.empty();
            schedule.receive(child, kIn, operation.buffer, operation.bytes);
            schedule.receives.back().combined = !first;
        }
        if (!near.is_root) schedule.forward(near.parent, kIn, operation.buffer, operation.bytes);
    }
    if (operation.kind == Kind::reduce) return;
    if (!near.is_root) schedule.receive(near.parent, kOut, operation.buffer, operation.bytes);
    for (const std::uint32_t child : near.children)
        schedule.forward(child, kOut, operation.buffer, operation.bytes);
}

int SiteLevel::post(LevelOperation& operation, Nanoseconds now) {
    if (own_failure() != 0) return own_failure();
    Schedule& schedule = begin(operation, now);
    exchanges(operation) ? make_exchange(operation, schedule) : make_tree(operation, schedule);
    carry_out();
    return 0;
}

bool SiteLevel::progress(Nanoseconds now) {
    if (!connected_ && hello_at_ <= now) send_hello_to_first(now);
    return MessageLevel::progress(now);
}

Nanoseconds SiteLevel::next_deadline() const {
    const Nanoseconds next = MessageLevel::next_deadline();
    return connected_ || own_failure() != 0 ? next : std::min(next, hello_at_);
}

}  // namespace mcastcoll::levels
