#include "levels/site_level.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {
namespace {

// Smaller pieces are sent at the end of a message only.
constexpr std::size_t kLeastPiece = 16384;
// Longer vectors are a matter of bandwidth, and are combined in place.
constexpr std::size_t kMostExchanged = 16384;

// This member's own contribution, where others are combined with it.
void take_own(const Leg& leg) {
    if (leg.bytes > 0 && leg.buffer != leg.input) std::memcpy(leg.buffer, leg.input, leg.bytes);
}

}  // namespace

SiteLevel::SiteLevel(const Placement& placement, const SiteConfig& config)
    : placement_(placement),
      config_(config),
      piece_bytes_((config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes)) /
                   kElementMultiple * kElementMultiple),
      flow_({config.key, config.epoch, placement.self(), placement.members(), config.window_bytes,
             wire::Kind::piece, wire::Kind::grant}) {
    assert(config.window_bytes >= 2 * cost_of(piece_bytes_));
}

SiteLevel::Peer& SiteLevel::peer(std::uint32_t rank) {
    const auto found =
        std::find_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.rank == rank; });
    if (found != peers_.end()) return *found;
    return peers_.emplace_back(Peer{flow_.new_peer(rank)});
}

void SiteLevel::start(Nanoseconds now) {
    greeted_ = !placement_.leads_segment() || placement_.segments().size() == 1;
    if (!greeted_ && !is_first()) greet(now);
}

void SiteLevel::greet(Nanoseconds now) {
    peer(placement_.segments().front()).grant_due = true;
    greet_at_ = now + greet_interval_;
    greet_interval_ = std::min(Nanoseconds{2 * greet_interval_.value}, kMostGreetInterval);
    moved_ = true;
}

void SiteLevel::on_greeting(Peer& from) {
    if (!placement_.leads_segment()) return;
    from.greeted = true;
    if (!is_first()) {
        if (from.rank == placement_.segments().front()) greeted_ = true;
        return;
    }
    for (const std::uint32_t leader : placement_.segments())
        if (leader != placement_.self() && !peer(leader).greeted) return;
    if (greeted_) {
        // It asks again: the answer may have come before it knew the group.
        from.grant_due = from.used == 0 && from.sent == 0;
        return;
    }
    greeted_ = true;
    for (Peer& one : peers_) one.grant_due = true;
}

void SiteLevel::send_to(std::uint32_t rank, Transfer& transfer, Phase phase, const std::byte* data,
                        Nanoseconds now) {
    peer(rank).sends.push_back({&transfer, phase, data, 0, now});
}

void SiteLevel::expect(Transfer& transfer, Phase phase, const std::vector<std::uint32_t>& from, How how,
                       Nanoseconds now) {
    Receive receive{&transfer, phase, how, {}, now};
    for (const std::uint32_t rank : from) receive.sources.push_back({rank, 0, false});
    if (!from.empty()) receives_.push_back(std::move(receive));
}

// Who takes part: the root first, or the first segment's leader, then the leaders of the other segments.
SiteLevel::Neighbours SiteLevel::neighbours(const Leg& leg) const {
    const bool rooted = leg.kind == Kind::broadcast || leg.kind == Kind::reduce;
    std::vector<std::uint32_t> nodes;
    if (rooted) nodes.push_back(index_of(leg.root));
    for (const std::uint32_t leader : placement_.segments()) {
        const bool with_root = leg.kind == Kind::broadcast &&
                               placement_.segment_of(leader) == placement_.segment_of(index_of(leg.root));
        if (!(rooted && (leader == index_of(leg.root) || with_root))) nodes.push_back(leader);
    }
    // The first node of each site, and those of this member's own.
    std::vector<std::uint32_t> heads, own;
    std::vector<bool> has_head(placement_.members());
    for (const std::uint32_t node : nodes) {
        const std::uint32_t site = placement_.site_of(node);
        if (!has_head[site]) heads.push_back(node);
        has_head[site] = true;
        if (site == placement_.site_of(placement_.self())) own.push_back(node);
    }
    Neighbours result;
    result.is_root = nodes.front() == placement_.self();
    connect(heads, config_.algorithm, result);
    connect(own, config_.within_algorithm, result);
    return result;
}

// Adds this member's part of one tree to its neighbours, if it is in it.
void SiteLevel::connect(const std::vector<std::uint32_t>& nodes, const topology::Algorithm& algorithm,
                        Neighbours& result) const {
    const auto self =
        static_cast<std::size_t>(std::find(nodes.begin(), nodes.end(), placement_.self()) - nodes.begin());
    if (self == nodes.size()) return;
    if (self > 0) result.parent = nodes[algorithm.parent_of(self)];
    for (std::size_t node = 1; node < nodes.size(); ++node)
        if (algorithm.parent_of(node) == self) result.children.push_back(nodes[node]);
}

// Vectors come from the children and go to the parent; node 0 has the sum.
void SiteLevel::post_inward(Transfer& transfer, const Neighbours& near, Nanoseconds now) {
    Leg& leg = *transfer.leg;
    const bool contributes = placement_.leads_segment();
    if (near.children.empty()) {
        if (!near.is_root) return send_to(near.parent, transfer, Phase::in, leg.input, now);
        return take_own(leg);
    }
    if (contributes) take_own(leg);
    expect(transfer, Phase::in, near.children, contributes ? How::combine : How::copy_then_combine, now);
    if (!near.is_root) send_to(near.parent, transfer, Phase::in, leg.buffer, now);
}

bool SiteLevel::exchanges(const Leg& leg) const {
    const bool for_all = leg.kind == Kind::barrier || leg.kind == Kind::allreduce;
    return for_all && placement_.segments().size() == 2 &&
           leg.bytes <= std::min<std::size_t>(kMostExchanged, piece_bytes_);
}

// What is sent is a copy, since the result may go where the input is.
void SiteLevel::post_exchange(Transfer& transfer, const Neighbours& near, Nanoseconds now) {
    Leg& leg = *transfer.leg;
    const std::uint32_t other = near.is_root ? near.children.front() : near.parent;
    transfer.exchanges = transfer.leaf = true;
    transfer.own = std::make_shared<std::vector<std::byte>>(leg.input, leg.input + leg.bytes);
    if (near.is_root) take_own(leg);
    expect(transfer, Phase::in, {other}, near.is_root ? How::combine : How::combine_own, now);
    send_to(other, transfer, Phase::in, transfer.own->data(), now);
}

// The first segment's vector with this one's, in that order on both sides: the same bits.
void SiteLevel::combine_own(const Transfer& transfer, std::vector<std::byte>& piece,
                            std::size_t offset) const {
    transfer.leg->combiner(piece.data(), transfer.own->data() + offset, piece.size());
    std::memcpy(transfer.leg->buffer + offset, piece.data(), piece.size());
}

// A message or result comes from the parent and goes to the children.
void SiteLevel::post_outward(Transfer& transfer, const Neighbours& near, Nanoseconds now) {
    if (!near.is_root) expect(transfer, Phase::out, {near.parent}, How::copy, now);
    for (const std::uint32_t child : near.children)
        send_to(child, transfer, Phase::out, transfer.leg->buffer, now);
}

int SiteLevel::post(Leg& leg, Nanoseconds now) {
    if (error_ != 0) return error_;
    if (moves_blocks(leg.kind)) return ENOSYS;
    const Neighbours near = neighbours(leg);
    Transfer& transfer = transfers_.emplace_back();
    transfer.leg = &leg;
    transfer.is_root = near.is_root;
    transfer.leaf = near.children.empty();
    if (exchanges(leg)) {
        post_exchange(transfer, near, now);
    } else {
        if (leg.kind != Kind::broadcast) post_inward(transfer, near, now);
        if (leg.kind != Kind::reduce) post_outward(transfer, near, now);
    }
    moved_ = true;
    settle(transfer);
    return 0;
}

void SiteLevel::advance(Leg&, Nanoseconds) {
    moved_ = true;
}

void SiteLevel::on_message(Bytes message, Nanoseconds) {
    wire::Decoded decoded;
    if (!flow_.accept(message, decoded)) return;
    const wire::Header& header = decoded.header;
    moved_ = true;
    Peer& from = peer(index_of(header.sender));
    if (header.kind == wire::Kind::grant) {
        PieceFlow::take_grant(from, header);
        on_greeting(from);
        return;
    }
    if (!flow_.take_piece(from, decoded)) return;
    from.pieces.push_back({number_of(header.operation),
                           header.total,
                           index_of(header.fragment),
                           {decoded.payload.begin(), decoded.payload.end()}});
}

// The next piece of this source, if it is here and its turn has come. Messages may overtake each other.
bool SiteLevel::take(Receive& receive, std::size_t index) {
    Source& source = receive.sources[index];
    Peer& from = peer(source.rank);
    const Leg& leg = *receive.transfer->leg;
    const auto next = from.find(word_of(leg, receive.phase), source.taken);
    if (next == from.pieces.end() || source.finished(leg.bytes)) return false;
    const std::size_t bytes = next->bytes.size();
    if (next->of != static_cast<std::uint32_t>(leg.bytes) || bytes > leg.bytes - source.taken) {
        failure_ = EMSGSIZE;
        return false;
    }
    if (index > 0 && source.taken + bytes > receive.sources[index - 1].taken) return false;
    if (bytes > 0) {
        std::byte* to = leg.buffer + source.taken;
        if (receive.how == How::combine_own)
            combine_own(*receive.transfer, next->bytes, source.taken);
        else if (receive.how == How::copy || (receive.how == How::copy_then_combine && index == 0))
            std::memcpy(to, next->bytes.data(), bytes);
        else
            leg.combiner(to, next->bytes.data(), bytes);
    }
    source.taken += bytes;
    source.heard = true;
    from.use(bytes);
    from.pieces.erase(next);
    return true;
}

template <class Call>
void SiteLevel::each_awaited(const Call& call) const {
    for (const Receive& receive : receives_)
        for (const Source& source : receive.sources)
            if (!source.finished(receive.transfer->leg->bytes)) call(source.rank, receive.since);
    for (const Peer& one : peers_)
        if (!one.sends.empty()) call(one.rank, one.sends.front().since);
}

bool SiteLevel::progress(Nanoseconds now) {
    if (!greeted_ && greet_at_ <= now) greet(now);
    bool moved = moved_;
    moved_ = false;
    for (std::size_t i = 0; i < receives_.size();) {
        Receive& receive = receives_[i];
        Transfer& transfer = *receive.transfer;
        Leg& leg = *transfer.leg;
        bool all = true;
        for (std::size_t index = 0; index < receive.sources.size(); ++index) {
            while (take(receive, index)) moved = true;
            all = all && receive.sources[index].finished(leg.bytes);
        }
        (receive.phase == Phase::in ? transfer.combined : leg.arrived) = receive.sources.back().taken;
        if (transfer.exchanges) leg.arrived = transfer.combined;
        if (!all) {
            ++i;
            continue;
        }
        receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(i));
        settle(transfer);
    }
    each_awaited([&](std::uint32_t rank, Nanoseconds since) {
        if (now - since >= config_.watch_delay) flow_.watch(rank);
    });
    if (failure_ != 0) fail(failure_, now);
    return moved;
}

// Done when nothing of it is expected and nothing to be sent.
void SiteLevel::settle(Transfer& transfer) {
    for (const Receive& receive : receives_)
        if (receive.transfer == &transfer) return;
    for (const Peer& one : peers_)
        for (const Send& send : one.sends)
            if (send.transfer == &transfer) return;
    transfer.leg->done = true;
    transfers_.remove_if([&](const Transfer& one) { return &one == &transfer; });
    moved_ = true;
}

// Bytes that may be sent by now: what is said to be ready, what is combined, or what has come.
std::size_t SiteLevel::sendable(const Send& send) {
    const Transfer& transfer = *send.transfer;
    const Leg& leg = *transfer.leg;
    if (send.phase == Phase::in) return transfer.leaf ? leg.bytes : transfer.combined;
    if (!transfer.is_root) return leg.arrived;
    if (leg.kind == Kind::broadcast) return leg.ready;
    return transfer.leaf ? leg.bytes : transfer.combined;
}

// Of a message of no bytes too something has to come before it goes on.
bool SiteLevel::is_due(const Send& send) const {
    if (send.transfer->exchanges) return true;
    const bool result = send.phase == Phase::out && send.transfer->is_root;
    for (const Receive& receive : receives_) {
        if (receive.transfer != send.transfer || receive.phase != (result ? Phase::in : send.phase)) continue;
        return std::all_of(receive.sources.begin(), receive.sources.end(),
                           [](const Source& source) { return source.heard; });
    }
    return true;
}

bool SiteLevel::next_piece(Peer& to, Outgoing& message) {
    if (to.sends.empty()) return false;
    Send& send = to.sends.front();
    Transfer& transfer = *send.transfer;
    const Leg& leg = *transfer.leg;
    const std::size_t bytes = std::min<std::size_t>(sendable(send) - send.sent, piece_bytes_);
    const bool last = send.sent + bytes == leg.bytes;
    if (!last && bytes < std::min<std::size_t>(kLeastPiece, piece_bytes_)) return false;
    if (!is_due(send) || !to.may_send(bytes)) return false;
    message.payload = Bytes(send.data + send.sent, bytes);
    flow_.make_piece(to, word_of(leg, send.phase), leg.bytes, send.sent, message);
    send.sent += bytes;
    if (last) {
        to.sends.pop_front();
        departing_ = transfer.own;  // the transfer may end here, the payload may not
        settle(transfer);
    }
    return true;
}

bool SiteLevel::poll_outgoing(Outgoing& message) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        turn_ = (turn_ + 1) % peers_.size();
        Peer& to = peers_[turn_];
        if (to.grant_due || flow_.grant_due(to)) {
            to.grant_due = false;
            flow_.make_grant(to, message);
            return true;
        }
        if (next_piece(to, message)) return true;
    }
    return false;
}

bool SiteLevel::needs(std::uint32_t rank) const {
    bool needed = std::any_of(peers_.begin(), peers_.end(),
                              [&](const Peer& one) { return one.rank == rank && one.missed(); });
    each_awaited([&](std::uint32_t awaited, Nanoseconds) { needed |= awaited == rank; });
    return needed;
}

Nanoseconds SiteLevel::next_deadline() const {
    if (error_ != 0) return kNever;
    Nanoseconds next = greeted_ ? kNever : greet_at_;
    each_awaited([&](std::uint32_t rank, Nanoseconds since) {
        if (!flow_.watched(rank)) next = std::min(next, since + config_.watch_delay);
    });
    return next;
}

void SiteLevel::fail(int error, Nanoseconds) {
    if (error_ != 0) return;
    error_ = error;
    receives_.clear();
    for (Peer& one : peers_) {
        one.sends.clear();
        one.pieces.clear();
    }
    for (const Transfer& transfer : transfers_) {
        transfer.leg->done = true;
        transfer.leg->error = error;
    }
    transfers_.clear();
    moved_ = true;
}

}  // namespace mcastcoll::levels
