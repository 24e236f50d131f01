#include "levels/exchange_level.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {
namespace {

constexpr std::uint32_t kMostMembers = 256;

std::uint32_t window_of(const ExchangeConfig& config) {
    return std::clamp(config.memory_bytes / std::max(1U, config.members), config.least_window_bytes,
                      config.most_window_bytes);
}

std::uint32_t piece_of(const ExchangeConfig& config) {
    const auto by_message = config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes);
    const auto by_window = window_of(config) / 2 - static_cast<std::uint32_t>(kPieceCost);
    return std::min(by_message, by_window) / kElementMultiple * kElementMultiple;
}

}  // namespace

ExchangeLevel::ExchangeLevel(const ExchangeConfig& config)
    : config_(config),
      window_bytes_(window_of(config)),
      piece_bytes_(piece_of(config)),
      flow_({config.key, config.epoch, config.self, config.members, window_bytes_, wire::Kind::block,
             wire::Kind::block_grant}),
      peers_(config.members) {
    assert(config.members <= kMostMembers && config.self < config.members);
    assert(piece_bytes_ > 0 && window_bytes_ >= 2 * cost_of(piece_bytes_));
}

ExchangeLevel::Peer& ExchangeLevel::peer(std::uint32_t rank) {
    if (!peers_[rank]) peers_[rank] = std::make_unique<Peer>(Peer{flow_.new_peer(rank)});
    return *peers_[rank];
}

ExchangeLevel::Transfer& ExchangeLevel::new_transfer() {
    if (spare_transfers_.empty()) {
        transfers_.push_back(std::make_unique<Transfer>());
    } else {
        transfers_.push_back(std::move(spare_transfers_.back()));
        spare_transfers_.pop_back();
    }
    return *transfers_.back();
}

void ExchangeLevel::enqueue(Peer& one) {
    if (one.queued) return;
    one.queued = true;
    ready_.push_back(&one);
}

int ExchangeLevel::post(Leg& leg, ExchangeAlgorithm algorithm, Nanoseconds now) {
    if (error_ != 0) return error_;
    Transfer& transfer = new_transfer();
    transfer.leg = &leg;
    transfer.word = leg.number << (kWordBits - kMessageBits) | static_cast<std::uint64_t>(leg.kind);
    transfer.complete = transfer.due = 0;
    transfer.dirty = transfer.moved = true;
    transfer.watched = false;
    transfer.still_since = now;
    Schedule& schedule = transfer.schedule;
    schedule.begin(leg, algorithm, config_.self, config_.members);
    transfer.open_sends = schedule.sends.size();
    transfer.open_receives = schedule.receives.size();
    for (std::uint32_t i = 0; i < schedule.receives.size(); ++i)
        if (const Inbound& in = schedule.receives[i]; in.own == nullptr) {
            Peer& from = peer(in.from);
            from.receives.push_back({&transfer, i});
            enqueue(from);
        }
    for (std::uint32_t i = 0; i < schedule.sends.size(); ++i) {
        Peer& to = peer(schedule.sends[i].to);
        to.sends.push_back({&transfer, i});
        enqueue(to);
    }
    posted_below_ = leg.number + 1;
    moved_ = true;
    check_kept();
    return 0;
}

bool ExchangeLevel::progress(Nanoseconds now) {
    bool moved = moved_;
    moved_ = false;
    for (std::size_t i = 0; i < transfers_.size();) {
        Transfer& transfer = *transfers_[i];
        if (transfer.dirty) moved |= advance_receives(transfer);
        if (transfer.moved) {
            transfer.moved = transfer.watched = false;
            transfer.still_since = now;
        } else if (!transfer.watched && now - transfer.still_since >= config_.watch_delay) {
            watch_still(transfer);
        }
        if (transfer.open_sends > 0 || transfer.open_receives > 0) {
            ++i;
            continue;
        }
        settle(i);
        moved = true;
    }
    if (failure_ != 0) fail(failure_, now);
    return moved;
}

// Nothing of it is expected and nothing to be sent.
void ExchangeLevel::settle(std::size_t index) {
    Transfer& transfer = *transfers_[index];
    transfer.schedule.finish(*transfer.leg, config_.self, config_.members);
    transfer.leg->done = true;
    spare_transfers_.push_back(std::move(transfers_[index]));
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Nobody has moved for a while: whoever this member waits for may be gone.
void ExchangeLevel::watch_still(Transfer& transfer) {
    transfer.watched = true;
    for (const Inbound& in : transfer.schedule.receives)
        if (!in.finished() && in.own == nullptr) flow_.watch(in.from);
    for (const Outbound& out : transfer.schedule.sends)
        if (!out.finished()) flow_.watch(out.to);
}

// Only who cannot send all that is expected of it with what it was granted.
bool ExchangeLevel::grant_due(const Peer& one) const {
    if (!flow_.grant_due(one)) return false;
    const std::uint64_t granted = one.told + window_bytes_ - one.used;
    std::uint64_t expected = 0;
    for (const Turn& turn : one.receives) {
        const Inbound& in = turn.transfer->schedule.receives[turn.index];
        const std::uint64_t rest = in.bytes - in.taken;
        expected += rest + (rest + piece_bytes_ - 1) / piece_bytes_ * kPieceCost;
        if (expected > granted) return true;
    }
    return false;
}

bool ExchangeLevel::next_piece(Peer& to, Outgoing& message) {
    if (to.sends.empty()) return false;
    const Turn turn = to.sends.front();
    Transfer& transfer = *turn.transfer;
    Outbound& out = transfer.schedule.sends[turn.index];
    const std::size_t bytes = std::min<std::size_t>(out.bytes - out.sent, piece_bytes_);
    if (transfer.complete < out.after || !to.may_send(bytes)) return false;
    BlockMap::Place place = out.map.place(out.sent);
    if (place.run >= bytes) {
        message.payload = Bytes(out.data + place.offset, bytes);
    } else {
        staging_.resize(piece_bytes_);
        for (std::size_t at = 0; at < bytes;) {
            place = out.map.place(out.sent + at);
            const std::size_t run = std::min(place.run, bytes - at);
            std::memcpy(staging_.data() + at, out.data + place.offset, run);
            at += run;
        }
        message.payload = Bytes(staging_).first(bytes);
    }
    flow_.make_piece(to, transfer.word << kMessageBits | out.message, transfer.leg->bytes, out.sent, message);
    out.sent += bytes;
    transfer.moved = moved_ = true;
    if (out.finished()) {
        --transfer.open_sends;
        to.sends.pop_front();
    }
    const Schedule::Order order = transfer.schedule.order;
    if (order == Schedule::Order::in_place || order == Schedule::Order::in_turn) transfer.dirty = true;
    return true;
}

// Everybody in turn, a piece each. Who has nothing to be sent now is enqueued again by what changes that.
bool ExchangeLevel::poll_outgoing(Outgoing& message) {
    while (!ready_.empty()) {
        Peer& to = *ready_.front();
        ready_.pop_front();
        to.queued = false;
        if (grant_due(to)) {
            flow_.make_grant(to, message);
            enqueue(to);
            return true;
        }
        if (next_piece(to, message)) {
            enqueue(to);
            return true;
        }
    }
    return false;
}

bool ExchangeLevel::needs(std::uint32_t rank) const {
    const Peer* one = peers_[rank].get();
    return one != nullptr && (!one->sends.empty() || !one->receives.empty() || one->missed());
}

std::uint32_t ExchangeLevel::awaited() const {
    for (const auto& transfer : transfers_)
        for (const Inbound& in : transfer->schedule.receives)
            if (!in.finished() && in.own == nullptr) return in.from;
    return kNotThere;
}

Nanoseconds ExchangeLevel::next_deadline() const {
    Nanoseconds next = kNever;
    for (const auto& transfer : transfers_)
        if (!transfer->watched) next = std::min(next, transfer->still_since + config_.watch_delay);
    return next;
}

void ExchangeLevel::fail(int error, Nanoseconds) {
    if (error_ != 0) return;
    error_ = error;
    for (const auto& one : peers_) {
        if (!one) continue;
        one->sends.clear();
        one->receives.clear();
        one->pieces.clear();
    }
    ready_.clear();
    for (const auto& transfer : transfers_) {
        transfer->leg->done = true;
        transfer->leg->error = error;
    }
    transfers_.clear();
    spare_bytes_.clear();
    moved_ = true;
}

}  // namespace mcastcoll::levels
