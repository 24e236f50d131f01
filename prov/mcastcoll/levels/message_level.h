// Messages among members: the common part of the site level and the exchange level.
//
// A posted level operation becomes a schedule (schedule.h) of messages to and from other members. Messages
// are sent in pieces. An expected piece is written directly to its destination; any other is stored, up to a
// window per sender, which is renewed by grants as pieces are used up. With many members windows are small: a
// sender with more expected data then borrows credit for a longer window, up to a limit for all senders
// together, and returns it by sending the expected data. A window is enough for progress, so no member waits
// for borrowed credit.
//
// Between two members pieces are sent in the order of operations, so an awaited piece is never blocked by
// later pieces that the receiver cannot take yet; within an operation rounds wait for earlier rounds only.
// This prevents deadlock among members with small windows.
//
// The cost of a piece includes a constant, so that empty pieces are bounded, too. Half a window holds at
// least one piece. A longer piece costs as much as the pieces it consists of, so both sides compute the same
// cost for a message, however it is cut.
//
// Contains no socket and no clock: messages in, messages out.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <unordered_map>
#include <vector>

#include "levels/queue.h"
#include "levels/schedule.h"
#include "wire/packet.h"

namespace mcastcoll::levels {

// A message to send. The payload is valid until the next poll_outgoing().
struct Outgoing {
    std::uint32_t to = 0;  // rank in the group
    wire::HeaderBytes header{};
    Bytes payload;
};

struct PieceCounters {
    std::uint64_t pieces_sent = 0, bytes_sent = 0, bad_pieces = 0;
};

struct MessageConfig {
    GroupKey key{};
    Epoch epoch{};
    wire::Checksum checksum = wire::Checksum::crc32c;  // none: a tag, handled by the caller, replaces it
    std::uint32_t self = 0, members = 0;
    std::uint32_t message_bytes = 65536;   // longest message, header included
    std::uint32_t window_bytes = 1 << 20;  // per sender, for stored pieces
    // The longest window of a sender with expected data, and the limit of borrowed credit for all senders.
    std::uint32_t long_window_bytes = 128 << 10, borrowed_credit_bytes = 16 << 20;
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);
};

// Distinguishes the messages of one level from the messages of other levels.
struct MessageFormat {
    wire::Kind piece{}, grant{};
    // The operation field of a header holds the operation's number, its kind, and the number of the message
    // between these two members.
    unsigned kind_bits = 0, message_bits = 0;
    // Whether grants also go to members that have no more data to send.
    bool grants_early = false;
};

class MessageLevel : public Level {
  public:
    void advance(LevelOperation& level_operation, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;
    void fail(int error, Nanoseconds now) override;
    int own_failure() const override { return error_; }

    bool takes(wire::Kind kind) const { return kind == format_.piece || kind == format_.grant; }
    void on_message(Bytes message, Nanoseconds now);
    // Fills in the next message to send. Returns false if there is none. Call while messages can be sent.
    bool poll_outgoing(Outgoing& message);
    // Sets `rank` to a member whose process is to be watched, because an operation has waited for it for
    // long. Returns false if there is none. Names each member once.
    bool poll_watch(std::uint32_t& rank);
    // Records that a member is gone. This is no error by itself, because the member's part may be finished.
    void lose(std::uint32_t rank);
    // Whether an open operation waits for this member, or data was sent there after the loss.
    bool needs(std::uint32_t rank) const;

    bool busy() const { return !transfers_.empty(); }
    // The first member that the oldest operation still waits for, or kNotThere.
    std::uint32_t awaited() const;

    const PieceCounters& counters() const { return counters_; }

  protected:
    // The state of an open level operation. Transfers are reused with their allocated memory.
    struct Transfer {
        LevelOperation* level_operation = nullptr;
        std::uint64_t word = 0;  // number and kind, as in a header
        Schedule schedule;
        std::size_t complete = 0, due = 0;  // leading complete receives; leading unblocked sends
        std::size_t open_sends = 0, open_receives = 0;
        bool dirty = false;  // a receive may be able to continue
        bool moved = false, watched = false;
        Nanoseconds still_since{};
    };
    // A message of a transfer: the index of a send or a receive.
    struct Turn {
        Transfer* transfer = nullptr;
        std::uint32_t index = 0;
    };
    // A stored piece.
    struct Piece {
        std::uint64_t operation = 0, offset = 0;
        std::uint32_t of = 0;  // length of the whole message, its low 32 bits
        std::vector<std::byte> bytes{};
    };
    // The state between this member and one peer.
    struct Peer {
        std::uint32_t rank = 0;
        // Cumulative costs of pieces.
        std::uint64_t sent = 0, granted = 0;            // sent to the peer; granted by the peer
        std::uint64_t kept = 0, used = 0, allowed = 0;  // the peer's pieces: stored here, used up, granted
        std::uint64_t sent_when_lost = UINT64_MAX;
        Queue<Piece> pieces{};   // stored: early pieces, and pieces not to be combined yet
        Queue<Turn> sends{};     // in the order of operations
        Queue<Turn> receives{};  // expected from the peer
        bool queued = false;     // this peer is in ready_
        bool watched = false;
        bool has_granted = false;  // the peer has sent a grant
        bool hello_due = false;    // a grant to the peer is due as a hello, whatever its credit
    };

    MessageLevel(const MessageConfig& config, const MessageFormat& format);

    // Returns an empty schedule, to be filled in before carry_out().
    Schedule& begin(LevelOperation& level_operation, Nanoseconds now);
    void carry_out();
    Peer& peer(std::uint32_t rank);
    void send_hello(Peer& one);
    virtual void on_grant(Peer&) {}

    const MessageConfig config_;
    const MessageFormat format_;
    const std::uint32_t unit_bytes_, min_piece_bytes_, piece_bytes_, max_borrowed_;

  private:
    void enqueue(Peer& one);
    void enqueue_sends(const Transfer& transfer);
    bool is_own(const Inbound& in) const { return in.peer == config_.self; }
    std::uint64_t word_of(const Transfer& transfer, const Message& message) const {
        return transfer.word << format_.message_bits | message.number;
    }
    wire::HeaderBytes header(wire::Kind kind, std::uint64_t operation, std::uint64_t of, std::uint64_t total,
                             Bytes payload) const;
    const Turn* expected(const Peer& from, std::uint64_t operation) const;
    std::size_t takeable(const Transfer& transfer, std::size_t index) const;
    bool take(const Turn& turn, Bytes bytes);
    bool take_kept(const Turn& turn);
    bool take_own(const Turn& turn);
    void check_kept();
    bool contradicts(const Peer& from, std::uint64_t operation, std::uint32_t of) const;
    bool advance_receives(Transfer& transfer);
    void end_receive(const Turn& turn);
    static std::uint32_t unit_of(const MessageConfig& config);
    static std::uint32_t longest_of(const MessageConfig& config);
    static std::uint32_t piece_of(const MessageConfig& config);
    std::uint64_t cost_of(std::uint64_t bytes) const;
    void use(Peer& one, std::size_t bytes);
    std::uint64_t borrowed_by(const Peer& one) const;
    std::uint64_t outstanding(const Peer& one, std::uint64_t max) const;
    std::uint64_t allowance(const Peer& one) const;
    bool grant_due(const Peer& one) const;
    void grant(Peer& one);
    bool next_piece(Peer& to, Outgoing& message);
    void watch_still(Transfer& transfer);
    void watch(std::uint32_t rank);

    std::unordered_map<std::uint32_t, Peer> peers_;    // by rank; only contacted members
    std::deque<Peer*> ready_;                          // peers to which something may have to be sent
    std::list<Transfer> transfers_, spare_transfers_;  // open ones in the order of posting
    std::vector<std::vector<std::byte>> spare_bytes_;  // reused memory of stored pieces
    std::vector<std::byte> staging_;                   // for a piece that spans several blocks
    std::vector<std::uint32_t> watches_;               // returned by poll_watch()
    PieceCounters counters_;
    std::uint64_t posted_below_ = 0;  // operations below this number are posted on this level
    std::uint64_t borrowed_ = 0;      // credit borrowed by all peers together
    int error_ = 0, failure_ = 0;
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
