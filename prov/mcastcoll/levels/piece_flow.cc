#include "levels/piece_flow.h"

namespace mcastcoll::levels {

bool PieceFlow::accept(Bytes message, wire::Decoded& decoded) {
    decoded = wire::decode(message);
    const wire::Header& header = decoded.header;
    const std::uint32_t sender = index_of(header.sender);
    const bool ours = decoded.refusal == wire::Refusal::none && header.key == config_.key &&
                      header.epoch == config_.epoch && sender < config_.members && sender != config_.self &&
                      (header.kind == config_.piece || header.kind == config_.grant);
    if (!ours) ++counters_.bad_pieces;
    return ours;
}

bool PieceFlow::take_piece(FlowPeer& from, const wire::Decoded& piece) {
    const std::uint64_t cost = cost_of(piece.payload.size());
    if (from.kept + cost > config_.window_bytes) {
        ++counters_.bad_pieces;
        return false;
    }
    from.kept += cost;
    return true;
}

void PieceFlow::make_grant(FlowPeer& to, Outgoing& message) {
    to.told = to.used;
    message.to = to.rank;
    message.payload = {};
    message.header = header(config_.grant, 0, 0, to.used + config_.window_bytes, {});
}

void PieceFlow::make_piece(FlowPeer& to, std::uint64_t operation, std::uint64_t of, std::uint64_t offset,
                           Outgoing& message) {
    message.to = to.rank;
    message.header = header(config_.piece, operation, of, offset, message.payload);
    to.sent += cost_of(message.payload.size());
    ++counters_.pieces_sent;
    counters_.bytes_sent += message.payload.size();
}

void PieceFlow::watch(std::uint32_t rank) {
    if (watched_[rank]) return;
    watched_[rank] = true;
    watches_.push_back(rank);
}

bool PieceFlow::poll_watch(std::uint32_t& rank) {
    if (watches_.empty()) return false;
    rank = watches_.back();
    watches_.pop_back();
    return true;
}

wire::HeaderBytes PieceFlow::header(wire::Kind kind, std::uint64_t operation, std::uint64_t of,
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
    wire::encode(header, payload, encoded);
    return encoded;
}

}  // namespace mcastcoll::levels
