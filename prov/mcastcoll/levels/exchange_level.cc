#include "levels/exchange_level.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {
namespace {

constexpr std::uint32_t kMostMembers = 256;
// Memory of kept pieces that is not given back at once.
constexpr std::size_t kMostSpare = 64;

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

void ExchangeLevel::enqueue(Peer& one) {
    if (one.queued) return;
    one.queued = true;
    ready_.push_back(&one);
}

int ExchangeLevel::post(Leg& leg, ExchangeAlgorithm algorithm, Nanoseconds now) {
    if (error_ != 0) return error_;
    if (spare_transfers_.empty()) spare_transfers_.emplace_back();
    transfers_.splice(transfers_.end(), spare_transfers_, spare_transfers_.begin());
    Transfer& transfer = transfers_.back();
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
    for (auto next = transfers_.begin(); next != transfers_.end();) {
        const auto at = next++;
        Transfer& transfer = *at;
        if (transfer.dirty) moved |= advance_receives(transfer);
        if (transfer.moved) {
            transfer.moved = transfer.watched = false;
            transfer.still_since = now;
        } else if (!transfer.watched && now - transfer.still_since >= config_.watch_delay) {
            watch_still(transfer);
        }
        if (transfer.open_sends > 0 || transfer.open_receives > 0) continue;
        transfer.schedule.finish(*transfer.leg, config_.self, config_.members);
        transfer.leg->done = true;
        spare_transfers_.splice(spare_transfers_.begin(), transfers_, at);
        moved = true;
    }
    if (failure_ != 0) fail(failure_, now);
    return moved;
}

// Nobody has moved for a while: whoever this member waits for may be gone.
void ExchangeLevel::watch_still(Transfer& transfer) {
    transfer.watched = true;
    for (const Inbound& in : transfer.schedule.receives)
        if (!in.finished() && in.own == nullptr) flow_.watch(in.from);
    for (const Outbound& out : transfer.schedule.sends)
        if (!out.finished()) flow_.watch(out.to);
}

// Receiving: which receive a piece is for, whether its turn has come, and what is kept until then.

// What came for this operation, or for one before it that was no exchange here, has to be what is posted.
void ExchangeLevel::check_kept() {
    for (const auto& one : peers_)
        if (one && std::any_of(one->pieces.begin(), one->pieces.end(), [&](const Piece& piece) {
                return contradicts(*one, piece.operation, piece.of);
            }))
            failure_ = EMSGSIZE;
}

// The receive that a message of this operation and number is for.
const ExchangeLevel::Turn* ExchangeLevel::expected(const Peer& from, std::uint64_t operation) const {
    for (const Turn& turn : from.receives)
        if ((turn.transfer->word << kMessageBits | turn.transfer->schedule.receives[turn.index].message) ==
            operation)
            return &turn;
    return nullptr;
}

// The members have posted different things under one number: nobody expects this, though the operation has
// been posted, or it is of another length.
bool ExchangeLevel::contradicts(const Peer& from, std::uint64_t operation, std::uint32_t of) const {
    if (operation >> kWordBits >= posted_below_) return false;
    const Turn* turn = expected(from, operation);
    return turn == nullptr || of != static_cast<std::uint32_t>(turn->transfer->leg->bytes);
}

// Bytes of a receive, from its first, that may be written by now.
std::size_t ExchangeLevel::takeable(const Transfer& transfer, std::size_t index) const {
    const Schedule& schedule = transfer.schedule;
    const Inbound& in = schedule.receives[index];
    switch (schedule.order) {
        case Schedule::Order::any:
            break;
        case Schedule::Order::in_turn:
            return transfer.complete == index ? schedule.sends[index].sent : 0;
        case Schedule::Order::in_place:
            return schedule.sends[index].sent;
        case Schedule::Order::combined:
            if (index > 0) return schedule.receives[index - 1].taken;
            break;
    }
    return in.bytes;
}

bool ExchangeLevel::take(const Turn& turn, Bytes bytes) {
    Transfer& transfer = *turn.transfer;
    Inbound& in = transfer.schedule.receives[turn.index];
    if (bytes.empty() || bytes.size() > in.bytes - in.taken) {
        failure_ = EMSGSIZE;
        return false;
    }
    if (in.taken + bytes.size() > takeable(transfer, turn.index)) return false;
    if (transfer.schedule.order == Schedule::Order::combined && turn.index > 0) {
        transfer.leg->combiner(in.data + in.taken, bytes.data(), bytes.size());
        in.taken += bytes.size();
    } else {
        for (Bytes rest = bytes; !rest.empty();) {
            const BlockMap::Place place = in.map.place(in.taken);
            const std::size_t run = std::min(place.run, rest.size());
            std::memcpy(in.data + place.offset, rest.data(), run);
            in.taken += run;
            rest = rest.subspan(run);
        }
    }
    transfer.moved = true;
    return true;
}

void ExchangeLevel::end_receive(Transfer& transfer, std::size_t index) {
    Inbound& in = transfer.schedule.receives[index];
    if (!in.finished()) return;
    --transfer.open_receives;
    const auto& receives = transfer.schedule.receives;
    while (transfer.complete < receives.size() && receives[transfer.complete].finished()) ++transfer.complete;
    const auto& sends = transfer.schedule.sends;
    for (; transfer.due < sends.size() && sends[transfer.due].after <= transfer.complete; ++transfer.due)
        enqueue(peer(sends[transfer.due].to));
    if (in.own != nullptr) return;
    std::erase_if(peer(in.from).receives,
                  [&](const Turn& turn) { return turn.transfer == &transfer && turn.index == index; });
}

// This member's own contribution, as far as those before it have come.
bool ExchangeLevel::take_own(Transfer& transfer, std::size_t index) {
    Inbound& in = transfer.schedule.receives[index];
    const std::size_t bytes = takeable(transfer, index) - in.taken;
    if (bytes == 0) return false;
    const bool taken = take({&transfer, static_cast<std::uint32_t>(index)}, Bytes(in.own + in.taken, bytes));
    end_receive(transfer, index);
    return taken;
}

// The next piece of this receive, if it was kept and may be taken by now.
bool ExchangeLevel::take_kept(Peer& from, const Turn& turn) {
    const Transfer& transfer = *turn.transfer;
    const Inbound& in = transfer.schedule.receives[turn.index];
    const auto next = from.find(transfer.word << kMessageBits | in.message, in.taken);
    if (next == from.pieces.end() || !take(turn, next->bytes)) return false;
    from.use(next->bytes.size());
    if (spare_bytes_.size() < kMostSpare) spare_bytes_.push_back(std::move(next->bytes));
    from.pieces.erase(next);
    enqueue(from);
    return true;
}

void ExchangeLevel::on_message(Bytes message, Nanoseconds) {
    wire::Decoded decoded;
    if (error_ != 0 || !flow_.accept(message, decoded)) return;
    const wire::Header& header = decoded.header;
    Peer& from = peer(index_of(header.sender));
    moved_ = true;
    enqueue(from);
    if (header.kind == wire::Kind::block_grant) return PieceFlow::take_grant(from, header);
    if (!flow_.take_piece(from, decoded)) return;
    const std::uint64_t operation = number_of(header.operation);
    const std::uint32_t of = index_of(header.fragment);
    if (contradicts(from, operation, of)) {
        failure_ = EMSGSIZE;
        return;
    }
    if (const Turn* found = expected(from, operation); found != nullptr) {
        const Turn turn = *found;
        Transfer& transfer = *turn.transfer;
        if (transfer.schedule.receives[turn.index].taken == header.total && take(turn, decoded.payload)) {
            from.use(decoded.payload.size());
            end_receive(transfer, turn.index);
            transfer.dirty = true;
            return;
        }
        transfer.dirty = true;
    }
    Piece& piece = from.pieces.emplace_back();
    piece.operation = operation;
    piece.offset = header.total;
    piece.of = of;
    if (!spare_bytes_.empty()) {
        piece.bytes = std::move(spare_bytes_.back());
        spare_bytes_.pop_back();
    }
    piece.bytes.assign(decoded.payload.begin(), decoded.payload.end());
}

// In their order, so that one pass is enough for those that wait for each other.
bool ExchangeLevel::advance_receives(Transfer& transfer) {
    transfer.dirty = false;
    bool moved = false;
    auto& receives = transfer.schedule.receives;
    for (std::size_t i = transfer.complete; i < receives.size(); ++i) {
        Inbound& in = receives[i];
        if (in.finished()) continue;
        if (in.own != nullptr) {
            moved |= take_own(transfer, i);
            continue;
        }
        Peer& from = peer(in.from);
        const Turn turn{&transfer, static_cast<std::uint32_t>(i)};
        if (from.pieces.empty()) continue;
        while (!in.finished() && take_kept(from, turn)) {
            moved = true;
            end_receive(transfer, i);
        }
    }
    return moved;
}

// Sending.

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
    for (const Transfer& transfer : transfers_)
        for (const Inbound& in : transfer.schedule.receives)
            if (!in.finished() && in.own == nullptr) return in.from;
    return kNotThere;
}

Nanoseconds ExchangeLevel::next_deadline() const {
    Nanoseconds next = kNever;
    for (const Transfer& transfer : transfers_)
        if (!transfer.watched) next = std::min(next, transfer.still_since + config_.watch_delay);
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
    for (const Transfer& transfer : transfers_) {
        transfer.leg->done = true;
        transfer.leg->error = error;
    }
    transfers_.clear();
    spare_bytes_.clear();
    moved_ = true;
}

}  // namespace mcastcoll::levels
