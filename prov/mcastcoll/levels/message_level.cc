#include "levels/message_level.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "levels/places.h"

namespace mcastcoll::levels {
namespace {

// Smaller pieces are sent only at the end of a message.
constexpr std::uint32_t kMinPiece = 16384;
// Number of buffers of stored pieces kept for reuse.
constexpr std::size_t kMaxSpare = 64;

}  // namespace

MessageLevel::MessageLevel(const MessageConfig& config, const MessageFormat& format)
    : config_(config),
      format_(format),
      unit_bytes_(unit_of(config)),
      min_piece_bytes_(std::min(unit_bytes_, longest_of(config))),
      piece_bytes_(piece_of(config)),
      max_borrowed_(std::max(config.long_window_bytes, config.window_bytes) - config.window_bytes) {
    assert(config.self < config.members && piece_bytes_ > 0);
}

MessageLevel::Peer& MessageLevel::peer(std::uint32_t rank) {
    const auto [found, made] = peers_.try_emplace(rank);
    Peer& one = found->second;
    if (made) {
        one.rank = rank;
        one.granted = one.allowed = config_.window_bytes;
    }
    return one;
}

void MessageLevel::enqueue(Peer& one) {
    if (one.queued) return;
    one.queued = true;
    ready_.push_back(&one);
}

void MessageLevel::enqueue_sends(const Transfer& transfer) {
    for (const Outbound& out : transfer.schedule.sends)
        if (!out.finished) enqueue(peer(out.peer));
}

void MessageLevel::send_hello(Peer& one) {
    one.hello_due = moved_ = true;
    enqueue(one);
}

Schedule& MessageLevel::begin(LevelOperation& level_operation, Nanoseconds now) {
    if (spare_transfers_.empty()) spare_transfers_.emplace_back();
    transfers_.splice(transfers_.end(), spare_transfers_, spare_transfers_.begin());
    Transfer& transfer = transfers_.back();
    transfer.level_operation = &level_operation;
    transfer.word = level_operation.number << format_.kind_bits;
    if (format_.kind_bits > 0) transfer.word |= static_cast<std::uint64_t>(level_operation.kind);
    transfer.complete = transfer.due = 0;
    transfer.dirty = transfer.moved = true;
    transfer.watched = false;
    transfer.still_since = now;
    transfer.schedule.clear();
    return transfer.schedule;
}

void MessageLevel::carry_out() {
    Transfer& transfer = transfers_.back();
    const Schedule& schedule = transfer.schedule;
    transfer.open_sends = schedule.sends.size();
    transfer.open_receives = schedule.receives.size();
    for (std::uint32_t i = 0; i < schedule.receives.size(); ++i)
        if (const Inbound& in = schedule.receives[i]; !is_own(in)) {
            Peer& from = peer(in.peer);
            from.receives.push_back({&transfer, i});
            enqueue(from);
        }
    for (std::uint32_t i = 0; i < schedule.sends.size(); ++i)
        peer(schedule.sends[i].peer).sends.push_back({&transfer, i});
    enqueue_sends(transfer);
    posted_below_ = transfer.level_operation->number + 1;
    moved_ = true;
    check_kept();
}

void MessageLevel::advance(LevelOperation& level_operation, Nanoseconds) {
    for (const Transfer& transfer : transfers_)
        if (transfer.level_operation == &level_operation) enqueue_sends(transfer);
    moved_ = true;
}

bool MessageLevel::progress(Nanoseconds now) {
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
        transfer.schedule.finish(*transfer.level_operation, config_.self, config_.members);
        transfer.level_operation->done = true;
        spare_transfers_.splice(spare_transfers_.begin(), transfers_, at);
        moved = true;
    }
    if (failure_ != 0) fail(failure_, now);
    return moved;
}

// Has the awaited members watched, which may be gone: there was no progress for a while.
void MessageLevel::watch_still(Transfer& transfer) {
    transfer.watched = true;
    for (const Inbound& in : transfer.schedule.receives)
        if (!in.finished && !is_own(in)) watch(in.peer);
    for (const Outbound& out : transfer.schedule.sends)
        if (!out.finished) watch(out.peer);
}

void MessageLevel::watch(std::uint32_t rank) {
    if (Peer& one = peer(rank); !std::exchange(one.watched, true)) watches_.push_back(rank);
}

bool MessageLevel::poll_watch(std::uint32_t& rank) {
    if (watches_.empty()) return false;
    rank = watches_.back();
    watches_.pop_back();
    return true;
}

// Receiving: finds the receive of a piece, checks whether it may proceed, and stores the piece until then.

// Checks the pieces stored for this operation, and for earlier operations without a part on this level,
// against the posted operations.
void MessageLevel::check_kept() {
    for (const auto& [rank, one] : peers_)
        for (const Piece& piece : one.pieces)
            if (contradicts(one, piece.operation, piece.of)) failure_ = EMSGSIZE;
}

// Returns the receive for a message with this operation field, or null.
const MessageLevel::Turn* MessageLevel::expected(const Peer& from, std::uint64_t operation) const {
    for (const Turn& turn : from.receives)
        if (word_of(*turn.transfer, turn.transfer->schedule.receives[turn.index]) == operation) return &turn;
    return nullptr;
}

// Whether members have posted different operations under one number: the operation was posted here, but
// expects no such message, or another length.
bool MessageLevel::contradicts(const Peer& from, std::uint64_t operation, std::uint32_t of) const {
    if (operation >> format_.message_bits >> format_.kind_bits >= posted_below_) return false;
    const Turn* turn = expected(from, operation);
    return turn == nullptr || of != static_cast<std::uint32_t>(turn->transfer->level_operation->bytes);
}

// Number of leading bytes of a receive that may be written now.
std::size_t MessageLevel::takeable(const Transfer& transfer, std::size_t index) const {
    const Schedule& schedule = transfer.schedule;
    const Inbound& in = schedule.receives[index];
    if (in.combined) return schedule.receives[index - 1].done;
    switch (schedule.order) {
        case Schedule::Order::any:
            break;
        case Schedule::Order::in_turn:
            return transfer.complete == index ? schedule.sends[index].done : 0;
        case Schedule::Order::in_place:
            return schedule.sends[index].done;
    }
    return in.bytes;
}

bool MessageLevel::take(const Turn& turn, Bytes bytes) {
    Transfer& transfer = *turn.transfer;
    LevelOperation& level_operation = *transfer.level_operation;
    Inbound& in = transfer.schedule.receives[turn.index];
    // An empty message is one piece, too.
    if (bytes.size() > in.bytes - in.done || bytes.empty() != (in.bytes == 0)) {
        failure_ = EMSGSIZE;
        return false;
    }
    if (in.done + bytes.size() > takeable(transfer, turn.index)) return false;
    if (in.combined) {
        level_operation.combiner(in.data + in.done, bytes.data(), bytes.size());
        in.done += bytes.size();
    } else {
        for (Bytes rest = bytes; !rest.empty();) {
            const BlockMap::Place place = in.map.place(in.done);
            const std::size_t run = std::min(place.run, rest.size());
            move_block(in.data + place.offset, rest.data(), run);
            in.done += run;
            rest = rest.subspan(run);
        }
    }
    in.finished = in.done == in.bytes;
    if (level_operation.kind == Kind::broadcast) level_operation.arrived = in.done;
    if (transfer.schedule.streams) enqueue_sends(transfer);
    transfer.moved = true;
    return true;
}

void MessageLevel::end_receive(const Turn& turn) {
    Transfer& transfer = *turn.transfer;
    const Inbound& in = transfer.schedule.receives[turn.index];
    if (!in.finished) return;
    --transfer.open_receives;
    const auto& receives = transfer.schedule.receives;
    while (transfer.complete < receives.size() && receives[transfer.complete].finished) ++transfer.complete;
    const auto& sends = transfer.schedule.sends;
    for (; transfer.due < sends.size() && sends[transfer.due].after <= transfer.complete; ++transfer.due)
        enqueue(peer(sends[transfer.due].peer));
    if (is_own(in)) return;
    Queue<Turn>& expected = peer(in.peer).receives;
    expected.erase(std::find_if(expected.begin(), expected.end(), [&](const Turn& one) {
        return one.transfer == &transfer && one.index == turn.index;
    }));
}

// Takes this member's own contribution, as far as the receives before it have arrived.
bool MessageLevel::take_own(const Turn& turn) {
    const Inbound& in = turn.transfer->schedule.receives[turn.index];
    const std::size_t bytes = takeable(*turn.transfer, turn.index) - in.done;
    return (bytes > 0 || in.bytes == 0) && take(turn, Bytes(in.own + in.done, bytes));
}

// Takes the next piece of this receive, if it is stored and may be taken.
bool MessageLevel::take_kept(const Turn& turn) {
    const Inbound& in = turn.transfer->schedule.receives[turn.index];
    Peer& from = peer(in.peer);
    const std::uint64_t operation = word_of(*turn.transfer, in);
    const auto next = std::find_if(from.pieces.begin(), from.pieces.end(), [&](const Piece& piece) {
        return piece.operation == operation && piece.offset == in.done;
    });
    if (next == from.pieces.end() || !take(turn, next->bytes)) return false;
    use(from, next->bytes.size());
    if (spare_bytes_.size() < kMaxSpare) spare_bytes_.push_back(std::move(next->bytes));
    from.pieces.erase(next);
    enqueue(from);
    return true;
}

void MessageLevel::on_message(Bytes message, Nanoseconds) {
    if (error_ != 0) return;
    const wire::Decoded decoded = wire::decode(message, config_.checksum);
    const wire::Header& header = decoded.header;
    const std::uint32_t sender = index_of(header.sender);
    if (decoded.refusal != wire::Refusal::none || header.key != config_.key ||
        header.epoch != config_.epoch || sender >= config_.members || sender == config_.self ||
        !takes(header.kind)) {
        ++counters_.bad_pieces;
        return;
    }
    Peer& from = peer(sender);
    moved_ = true;
    enqueue(from);
    if (header.kind == format_.grant) {
        from.granted = std::max(from.granted, header.total);  // grants may overtake each other
        return on_grant(from);
    }
    const std::uint64_t cost = cost_of(decoded.payload.size());
    if (from.used + from.kept + cost > from.allowed) {
        ++counters_.bad_pieces;
        return;
    }
    from.kept += cost;
    const std::uint64_t operation = number_of(header.operation);
    const std::uint32_t of = index_of(header.fragment);
    if (contradicts(from, operation, of)) {
        failure_ = EMSGSIZE;
        return;
    }
    if (const Turn* found = expected(from, operation); found != nullptr) {
        const Turn turn = *found;
        Transfer& transfer = *turn.transfer;
        if (transfer.schedule.receives[turn.index].done == header.total && take(turn, decoded.payload)) {
            transfer.dirty |= !from.pieces.empty() || transfer.schedule.ordered(turn.index);
            use(from, decoded.payload.size());
            return end_receive(turn);
        }
    }
    Piece piece{operation, header.total, of};
    if (!spare_bytes_.empty()) {
        piece.bytes = std::move(spare_bytes_.back());
        spare_bytes_.pop_back();
    }
    piece.bytes.assign(decoded.payload.begin(), decoded.payload.end());
    from.pieces.push_back(std::move(piece));
}

// Visits receives in order, so one pass is enough for dependent receives.
bool MessageLevel::advance_receives(Transfer& transfer) {
    transfer.dirty = false;
    bool moved = false;
    auto& receives = transfer.schedule.receives;
    for (std::size_t i = transfer.complete; i < receives.size(); ++i) {
        const Inbound& in = receives[i];
        const Turn turn{&transfer, static_cast<std::uint32_t>(i)};
        const bool behind = in.combined || transfer.schedule.order == Schedule::Order::in_turn;
        if (behind && in.bytes > 0 && takeable(transfer, i) == 0) break;  // later receives are blocked, too
        while (!in.finished && (is_own(in) ? take_own(turn) : take_kept(turn))) {
            moved = true;
            end_receive(turn);
        }
    }
    return moved;
}

// Sending.

wire::HeaderBytes MessageLevel::header(wire::Kind kind, std::uint64_t operation, std::uint64_t of,
                                       std::uint64_t total, Bytes payload) const {
    const wire::Header header{.kind = kind,
                              .key = config_.key,
                              .epoch = config_.epoch,
                              .sender = rank_of(config_.self),
                              .operation = operation_of(operation),
                              .fragment = fragment_of(static_cast<std::uint32_t>(of)),
                              .payload_bytes = static_cast<std::uint32_t>(payload.size()),
                              .total = total};
    wire::HeaderBytes encoded;
    wire::encode(header, payload, encoded, config_.checksum);
    return encoded;
}

bool MessageLevel::next_piece(Peer& to, Outgoing& message) {
    if (to.sends.empty()) return false;
    const Turn turn = to.sends.front();
    Transfer& transfer = *turn.transfer;
    const LevelOperation& level_operation = *transfer.level_operation;
    Outbound& out = transfer.schedule.sends[turn.index];
    if (transfer.complete < out.after) return false;
    std::size_t bytes =
        std::min<std::size_t>(transfer.schedule.sendable(level_operation, out) - out.done, piece_bytes_);
    if (out.done + bytes < out.bytes && bytes < std::min(kMinPiece, piece_bytes_)) return false;
    if (const std::uint64_t room = to.granted - to.sent; cost_of(bytes) > room) {
        bytes = room / cost_of(min_piece_bytes_) * min_piece_bytes_;
        if (bytes == 0) return false;
    }
    const bool last = out.done + bytes == out.bytes;
    BlockMap::Place place = out.map.place(out.done);
    if (place.run >= bytes) {
        message.payload = Bytes(out.data + place.offset, bytes);
    } else {
        staging_.resize(piece_bytes_);
        for (std::size_t at = 0; at < bytes;) {
            place = out.map.place(out.done + at);
            const std::size_t run = std::min(place.run, bytes - at);
            std::memcpy(staging_.data() + at, out.data + place.offset, run);
            at += run;
        }
        message.payload = Bytes(staging_).first(bytes);
    }
    message.header =
        header(format_.piece, word_of(transfer, out), level_operation.bytes, out.done, message.payload);
    to.sent += cost_of(bytes);
    ++counters_.pieces_sent;
    counters_.bytes_sent += bytes;
    out.done += bytes;
    transfer.moved = moved_ = true;
    if (last) {
        out.finished = true;
        --transfer.open_sends;
        to.sends.pop_front();
    }
    if (transfer.schedule.order != Schedule::Order::any) transfer.dirty = true;
    return true;
}

// Serves the peers in turn, one piece each. A peer without a sendable message is enqueued again when a
// message becomes sendable.
bool MessageLevel::poll_outgoing(Outgoing& message) {
    while (!ready_.empty()) {
        Peer& to = *ready_.front();
        ready_.pop_front();
        to.queued = false;
        message.to = to.rank;
        if (grant_due(to)) {
            grant(to);
            message.payload = {};
            message.header = header(format_.grant, 0, 0, to.allowed, {});
        } else if (!next_piece(to, message)) {
            continue;
        }
        enqueue(to);
        return true;
    }
    return false;
}

// A lost member is no error by itself, but data sent to it later is.
void MessageLevel::lose(std::uint32_t rank) {
    Peer& gone = peer(rank);
    gone.sent_when_lost = std::min(gone.sent_when_lost, gone.sent);
}

bool MessageLevel::needs(std::uint32_t rank) const {
    const auto found = peers_.find(rank);
    if (found == peers_.end()) return false;
    const Peer& one = found->second;
    return !one.sends.empty() || !one.receives.empty() || one.sent_when_lost < one.sent;
}

std::uint32_t MessageLevel::awaited() const {
    for (const Transfer& transfer : transfers_)
        for (const Inbound& in : transfer.schedule.receives)
            if (!in.finished && !is_own(in)) return in.peer;
    return kNotThere;
}

Nanoseconds MessageLevel::next_deadline() const {
    Nanoseconds next = kNever;
    for (const Transfer& transfer : transfers_)
        if (!transfer.watched) next = std::min(next, transfer.still_since + config_.watch_delay);
    return next;
}

void MessageLevel::fail(int error, Nanoseconds) {
    if (error_ != 0) return;
    error_ = error;
    for (auto& [rank, one] : peers_) {
        one.sends.clear();
        one.receives.clear();
        one.pieces.clear();
    }
    ready_.clear();
    for (const Transfer& transfer : transfers_) {
        transfer.level_operation->done = true;
        transfer.level_operation->error = error;
    }
    transfers_.clear();
    spare_bytes_.clear();
    moved_ = true;
}

}  // namespace mcastcoll::levels
