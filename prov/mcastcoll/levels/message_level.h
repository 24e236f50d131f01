// Messages among members: what the site level and the exchange level have in common.
//
// A posted leg becomes a schedule (schedule.h) of messages to and from others. Messages are sent in
// pieces. A piece that is expected goes straight to where it belongs; any other is kept, up to a window for
// each sender, who is granted more as they are used up. Where windows are small, because there are many
// members, a sender of whom more is expected is lent a longer one; what all are lent together is bounded. It
// gives that back by sending what was expected. Nothing waits for a loan: a window is enough to get on.
//
// Between two members pieces are sent in the order of operations, so that what a receiver waits for never
// waits for room behind what it cannot take yet; and within an operation rounds wait for earlier rounds only.
// So members with small windows that all send to each other at once get on.
//
// A piece costs a little beyond its bytes, so that empty ones are bounded too. Half a window holds a piece at
// least; a longer piece costs as much as those that it is made of, so both sides know what a message costs
// however it is cut.
//
// Pure as the engine is: messages in, messages out.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <unordered_map>
#include <vector>

#include "levels/placement.h"
#include "levels/queue.h"
#include "levels/schedule.h"
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

struct MessageConfig {
    GroupKey key{};
    Epoch epoch{};
    wire::Checksum checksum = wire::Checksum::crc32c;  // none: tags stand in for it, made and checked outside
    std::uint32_t self = 0, members = 0;
    std::uint32_t message_bytes = 65536;   // longest message, header included
    std::uint32_t window_bytes = 1 << 20;  // pieces that a receiver keeps for each sender
    // The longest window while more is expected of a sender, and by how much those of all may be longer.
    std::uint32_t long_window_bytes = 128 << 10, lent_bytes = 16 << 20;
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);
};

// How a level's messages are told from others'.
struct MessageFormat {
    wire::Kind piece{}, grant{};
    // In a header an operation is its number, its kind, and the message between these two members.
    unsigned kind_bits = 0, message_bits = 0;
    // A grant goes to who still has to send, or also to who has sent all.
    bool grants_early = false;
};

class MessageLevel : public Level {
  public:
    void advance(Leg& leg, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;
    void fail(int error, Nanoseconds now) override;
    int own_failure() const override { return error_; }

    bool takes(wire::Kind kind) const { return kind == format_.piece || kind == format_.grant; }
    void on_message(Bytes message, Nanoseconds now);
    // What is to go out, one at a time, while messages can be sent.
    bool poll_outgoing(Outgoing& message);
    // A member whose process is to be watched, because an operation has waited long for it; each once.
    bool poll_watch(std::uint32_t& rank);
    // This member is gone. It may have done its share, so that is no error by itself.
    void lose(std::uint32_t rank);
    // Something that is open here waits for this member, or it is lost and was sent something since.
    bool needs(std::uint32_t rank) const;

    bool busy() const { return !transfers_.empty(); }
    // The first member that the oldest operation still waits for, or kNotThere.
    std::uint32_t awaited() const;

    const PieceCounters& counters() const { return counters_; }

  protected:
    // A leg on its way. Transfers are used again, with the memory that they have got.
    struct Transfer {
        Leg* leg = nullptr;
        std::uint64_t word = 0;  // number and kind, as in a header
        Schedule schedule;
        std::size_t complete = 0, due = 0;  // receives, and sends that wait for no more, from the first
        std::size_t open_sends = 0, open_receives = 0;
        bool dirty = false;  // a receive may have come closer to its turn
        bool moved = false, watched = false;
        Nanoseconds still_since{};
    };
    struct Turn {
        Transfer* transfer = nullptr;
        std::uint32_t index = 0;
    };
    // One that was kept.
    struct Piece {
        std::uint64_t operation = 0, offset = 0;
        std::uint32_t of = 0;  // the length of all, its low 32 bits
        std::vector<std::byte> bytes{};
    };
    // What passes between this member and another.
    struct Peer {
        std::uint32_t rank = 0;
        // Costs of pieces, all told.
        std::uint64_t sent = 0, granted = 0;            // to it; by it
        std::uint64_t kept = 0, used = 0, allowed = 0;  // of its: here now, used up, and granted to it
        std::uint64_t sent_when_lost = UINT64_MAX;
        Queue<Piece> pieces{};   // kept: early ones, and those whose turn to be combined has not come
        Queue<Turn> sends{};     // in the order of operations
        Queue<Turn> receives{};  // expected of it
        bool queued = false;     // in ready_
        bool watched = false;
        bool greeted = false, is_greeted = false;  // it has sent a grant; it is to be sent one
    };

    MessageLevel(const MessageConfig& config, const MessageFormat& format);

    // The schedule of a leg, to be filled in and carried out.
    Schedule& begin(Leg& leg, Nanoseconds now);
    void carry_out();
    Peer& peer(std::uint32_t rank);
    void greet(Peer& one);
    virtual void on_grant(Peer&) {}

    const MessageConfig config_;
    const MessageFormat format_;
    const std::uint32_t unit_bytes_, least_piece_bytes_, piece_bytes_, longest_loan_;

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
    std::uint64_t lent_to(const Peer& one) const;
    std::uint64_t outstanding(const Peer& one, std::uint64_t most) const;
    std::uint64_t allowance(const Peer& one) const;
    bool grant_due(const Peer& one) const;
    void grant(Peer& one);
    bool next_piece(Peer& to, Outgoing& message);
    void watch_still(Transfer& transfer);
    void watch(std::uint32_t rank);

    std::unordered_map<std::uint32_t, Peer> peers_;    // by rank, of those heard of or spoken to
    std::deque<Peer*> ready_;                          // those that something may have to be sent to
    std::list<Transfer> transfers_, spare_transfers_;  // open, in the order of posting
    std::vector<std::vector<std::byte>> spare_bytes_;  // of kept pieces
    std::vector<std::byte> staging_;                   // of a piece that lies in several blocks
    std::vector<std::uint32_t> watches_;               // to be asked for
    PieceCounters counters_;
    std::uint64_t posted_below_ = 0;  // all operations below this number that come this way are posted
    std::uint64_t lent_ = 0;          // to all
    int error_ = 0, failure_ = 0;
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
