// Messages among all members of a group, whatever host they are on: gather, scatter, alltoall and
// reduce_scatter, where each has other bytes for each, and multicast has nothing to offer; and an allgather
// without multicast.
//
// A posted operation becomes a schedule (exchange_schedule.h) of messages to and from others. Messages are
// sent in pieces. A piece that is expected goes straight to where it belongs; any other is kept, up to a
// window for each sender, and 32 MiB in all. Between two members pieces are sent in the order of operations,
// so that what a receiver waits for never waits for room behind what it cannot take yet; and within an
// operation rounds wait for earlier rounds only. So members with small windows that all send to each other at
// once get on.
//
// A grant is sent only to who still has to send: whoever has done its share may close the group and be gone.
//
// Nobody needs to greet. A group's join ends with something that everybody hears of from everybody (the
// election of the engine, or a barrier over all levels), so whoever may post is known to all.
//
// Pure as the engine is: messages in, messages out.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "levels/exchange_schedule.h"
#include "levels/level.h"
#include "levels/piece_flow.h"
#include "levels/placement.h"

namespace mcastcoll::levels {

struct ExchangeConfig {
    GroupKey key{};
    Epoch epoch{};
    std::uint32_t self = 0, members = 0;
    std::uint32_t message_bytes = 65536;  // longest message, header included
    // What may be kept of all senders, and of one at least and at most.
    std::uint32_t memory_bytes = 32 << 20, least_window_bytes = 128 << 10, most_window_bytes = 1 << 20;
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);
};

class ExchangeLevel final : public Level {
  public:
    explicit ExchangeLevel(const ExchangeConfig& config);

    // ENOSYS: no exchange of blocks.
    int post(Leg& leg, Nanoseconds now) override {
        return moves_blocks(leg.kind) ? post(leg, choose(leg.kind, leg.bytes, config_.members), now) : ENOSYS;
    }
    // By this algorithm, on all members.
    int post(Leg& leg, ExchangeAlgorithm algorithm, Nanoseconds now);
    void advance(Leg&, Nanoseconds) override {}
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;
    void fail(int error, Nanoseconds now) override;

    static bool takes(wire::Kind kind) {
        return kind == wire::Kind::block || kind == wire::Kind::block_grant;
    }
    void on_message(Bytes message, Nanoseconds now);
    // What is to go out, one at a time, while messages can be sent.
    bool poll_outgoing(Outgoing& message);
    // A member whose process is to be watched, because an operation has waited long for it.
    bool poll_watch(std::uint32_t& rank) { return flow_.poll_watch(rank); }
    // This member is gone. It may have done its share, so that is no error by itself.
    void lose(std::uint32_t rank) { peer(rank).lose(); }
    // Something that is open here waits for this member, or it is lost and was sent something since.
    bool needs(std::uint32_t rank) const;

    bool busy() const { return !transfers_.empty(); }
    // The first member that the oldest operation still waits for, or kNotThere.
    std::uint32_t awaited() const;

    std::uint32_t window_bytes() const { return window_bytes_; }
    const PieceCounters& counters() const { return flow_.counters(); }

  private:
    // In a header an operation is its number, its kind, and the message between these two members.
    static constexpr std::uint64_t kMessageBits = 8, kWordBits = 12;

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
    struct Peer : FlowPeer {
        std::deque<Turn> sends{};     // in the order of operations
        std::deque<Turn> receives{};  // expected of it
        bool queued = false;          // in ready_
    };

    Peer& peer(std::uint32_t rank);
    void enqueue(Peer& one);
    const Turn* expected(const Peer& from, std::uint64_t operation) const;
    std::size_t takeable(const Transfer& transfer, std::size_t index) const;
    bool take(const Turn& turn, Bytes bytes);
    bool take_kept(Peer& from, const Turn& turn);
    bool take_own(Transfer& transfer, std::size_t index);
    void check_kept();
    bool contradicts(const Peer& from, std::uint64_t operation, std::uint32_t of) const;
    bool advance_receives(Transfer& transfer);
    void end_receive(Transfer& transfer, std::size_t index);
    bool grant_due(const Peer& one) const;
    bool next_piece(Peer& to, Outgoing& message);
    void watch_still(Transfer& transfer);

    const ExchangeConfig config_;
    const std::uint32_t window_bytes_, piece_bytes_;
    PieceFlow flow_;
    std::vector<std::unique_ptr<Peer>> peers_;         // by rank, made when first heard of or spoken to
    std::deque<Peer*> ready_;                          // those that something may have to be sent to
    std::list<Transfer> transfers_, spare_transfers_;  // open, in the order of posting
    std::vector<std::vector<std::byte>> spare_bytes_;  // of kept pieces
    std::vector<std::byte> staging_;                   // of a piece that lies in several blocks
    std::uint64_t posted_below_ = 0;  // all operations below this number that are exchanges are posted
    int error_ = 0, failure_ = 0;
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
