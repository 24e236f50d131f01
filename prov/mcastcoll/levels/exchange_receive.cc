// The receiving side of the exchange level: which receive a piece is for, whether its turn has come, and what
// is kept until then.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "levels/exchange_level.h"

namespace mcastcoll::levels {
namespace {

// Memory of kept pieces that is not given back at once.
constexpr std::size_t kMostSpare = 64;

}  // namespace

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

}  // namespace mcastcoll::levels
