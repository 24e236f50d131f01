// What members that send each other messages need, whatever is in them: headers, the checks of what comes,
// windows of credit, and the list of those to be watched. The site level and the exchange level each have
// one, with kinds of messages of their own.
//
// Whoever cannot use a piece yet keeps it, up to a window for each sender, and grants the sender more as it
// uses them up. A piece costs a little beyond its bytes, so that empty ones are bounded too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "wire/packet.h"

namespace mcastcoll::levels {

// What is to go out. The payload holds until the next is asked for.
struct Outgoing {
    std::uint32_t to = 0;  // rank in the group
    wire::HeaderBytes header{};
    Bytes payload;
};

struct PieceCounters {
    std::uint64_t pieces_sent = 0, bytes_sent = 0, bad_pieces = 0;
};

// Pieces hold whole elements of every datatype.
inline constexpr std::uint32_t kElementMultiple = 32;
inline constexpr std::uint64_t kPieceCost = 64;
constexpr std::uint64_t cost_of(std::size_t bytes) {
    return bytes + kPieceCost;
}

// One that was kept.
struct Piece {
    std::uint64_t operation = 0, offset = 0;
    std::uint32_t of = 0;  // the length of all, its low 32 bits
    std::vector<std::byte> bytes;
};

// What passes between this member and another.
struct FlowPeer {
    std::uint32_t rank = 0;
    // Costs of pieces, all told.
    std::uint64_t sent = 0, granted = 0;         // to it; by it
    std::uint64_t kept = 0, used = 0, told = 0;  // of its: here now, used up, and used up as far as it knows
    std::uint64_t sent_when_lost = UINT64_MAX;
    std::deque<Piece> pieces{};  // kept: early ones, and those whose turn to be combined has not come

    // Its process is gone. Nobody minds, unless something is sent to it later.
    void lose() {
        if (sent_when_lost == UINT64_MAX) sent_when_lost = sent;
    }
    bool missed() const { return sent_when_lost < sent; }

    bool may_send(std::size_t bytes) const { return sent + cost_of(bytes) <= granted; }
    void use(std::size_t bytes) {
        kept -= cost_of(bytes);
        used += cost_of(bytes);
    }
    auto find(std::uint64_t operation, std::uint64_t offset) {
        return std::find_if(pieces.begin(), pieces.end(), [&](const Piece& piece) {
            return piece.operation == operation && piece.offset == offset;
        });
    }
};

struct PieceFlowConfig {
    GroupKey key{};
    Epoch epoch{};
    std::uint32_t self = 0, members = 0;
    std::uint32_t window_bytes = 0;  // pieces that a receiver keeps for each sender
    wire::Kind piece{}, grant{};     // its kinds of messages
};

class PieceFlow {
  public:
    explicit PieceFlow(const PieceFlowConfig& config) : config_(config), watched_(config.members) {}

    FlowPeer new_peer(std::uint32_t rank) const { return {.rank = rank, .granted = config_.window_bytes}; }
    // Of this group, from another member, and one of the two kinds; anything else is counted.
    bool accept(Bytes message, wire::Decoded& decoded);
    // What a grant says. Grants may overtake each other.
    static void take_grant(FlowPeer& from, const wire::Header& header) {
        from.granted = std::max(from.granted, header.total);
    }
    // False: it is more than was granted, and counted.
    bool take_piece(FlowPeer& from, const wire::Decoded& piece);

    bool grant_due(const FlowPeer& to) const { return to.used - to.told >= config_.window_bytes / 4; }
    void make_grant(FlowPeer& to, Outgoing& message);
    // The payload is in the message already. `of` is the length that both must agree about.
    void make_piece(FlowPeer& to, std::uint64_t operation, std::uint64_t of, std::uint64_t offset,
                    Outgoing& message);

    // A member whose process is to be watched, because an operation has waited long for it; each once.
    void watch(std::uint32_t rank);
    bool watched(std::uint32_t rank) const { return watched_[rank]; }
    bool poll_watch(std::uint32_t& rank);

    const PieceCounters& counters() const { return counters_; }

  private:
    wire::HeaderBytes header(wire::Kind kind, std::uint64_t operation, std::uint64_t of, std::uint64_t total,
                             Bytes payload) const;

    const PieceFlowConfig config_;
    std::vector<std::uint32_t> watches_;
    std::vector<bool> watched_;
    PieceCounters counters_;
};

}  // namespace mcastcoll::levels
