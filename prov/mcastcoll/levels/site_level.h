// Between segments: trees of reliable messages, one between sites and one between the segments of each site.
// They are flat unless the user says otherwise, because links between sites are long and each is to be
// crossed once: the root of a broadcast sends the message once to every other site, and to every other
// segment of its own; of a reduction each leader sends its segment's vector once, and the first segment's
// leader the result back. Of each site only the first segment takes part in the tree between sites, and
// passes on within its own: so a link between sites is crossed once, however many segments are at its ends.
//
// Messages are pieces of at most so many bytes. Whoever has not posted an operation yet keeps its pieces, up
// to a window per sender, and grants the sender more as it uses them up. Between two members pieces are sent
// in the order of operations, so that what a receiver waits for never waits for room behind what it cannot
// take yet. Vectors are combined in the order of segments, each piece when its turn comes, so the result does
// not depend on who was first.
//
// Two segments exchange what is short: each sends the other its vector, and both combine. The link is crossed
// as often as by a vector there and a result back, in half the time.
//
// A piece for a member that has not heard of the group yet would be lost. So segments greet before they work:
// the first one's leader is sent an empty grant again and again, and when it has one from everybody it
// answers all.
//
// Pure as the engine is: messages in, messages out.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "levels/level.h"
#include "levels/piece_flow.h"
#include "levels/placement.h"
#include "topology/policy.h"

namespace mcastcoll::levels {

// How often a segment that is not answered greets: less and less.
inline constexpr Nanoseconds kLeastGreetInterval = Nanoseconds::from_ms(5);
inline constexpr Nanoseconds kMostGreetInterval = Nanoseconds::from_ms(500);

struct SiteConfig {
    GroupKey key{};
    Epoch epoch{};
    std::uint32_t message_bytes = 65536;   // longest message, header included
    std::uint32_t window_bytes = 1 << 20;  // pieces that a receiver keeps for each sender
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);
    topology::Algorithm algorithm;         // the shape of the tree: between sites,
    topology::Algorithm within_algorithm;  // and between the segments of one
};

class SiteLevel final : public Level {
  public:
    SiteLevel(const Placement& placement, const SiteConfig& config);

    // Begins to greet. Nobody posts before greeted().
    void start(Nanoseconds now);
    bool greeted() const { return greeted_; }

    int post(Leg& leg, Nanoseconds now) override;
    void advance(Leg& leg, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override;
    void fail(int error, Nanoseconds now) override;

    // Pieces and grants of this group; anything else is not ours.
    static bool takes(wire::Kind kind) { return kind == wire::Kind::piece || kind == wire::Kind::grant; }
    void on_message(Bytes message, Nanoseconds now);

    // What is to go out, one at a time, while messages can be sent.
    bool poll_outgoing(Outgoing& message);
    // A member whose process is to be watched, because an operation has waited long for it.
    bool poll_watch(std::uint32_t& rank) { return flow_.poll_watch(rank); }
    // This member is gone. It may have done its share, so that is no error by itself.
    void lose(std::uint32_t rank) { peer(rank).lose(); }
    // Something that is open here waits for this member, or it is lost and was sent something since.
    bool needs(std::uint32_t rank) const;

    const PieceCounters& counters() const { return flow_.counters(); }

  private:
    enum class Phase : std::uint8_t { in, out };
    // How a header names the operation.
    static std::uint64_t word_of(const Leg& leg, Phase phase) {
        return leg.number << 1 | static_cast<std::uint64_t>(phase);
    }
    enum class How : std::uint8_t { copy, combine, copy_then_combine, combine_own };
    // A leg on its way.
    struct Transfer {
        Leg* leg = nullptr;
        bool is_root = false, leaf = false, exchanges = false;
        std::size_t combined = 0;                           // bytes that hold all children's contributions
        std::shared_ptr<const std::vector<std::byte>> own;  // this segment's vector, when two exchange theirs
    };
    // A vector or message on its way to another member.
    struct Send {
        Transfer* transfer = nullptr;
        Phase phase = Phase::in;
        const std::byte* data = nullptr;
        std::size_t sent = 0;
        Nanoseconds since{};
    };
    struct Neighbours {
        bool is_root = false;
        std::uint32_t parent = 0;
        std::vector<std::uint32_t> children;
    };
    struct Peer : FlowPeer {
        std::deque<Send> sends{};  // in the order of operations
        bool grant_due = false, greeted = false;
    };
    struct Source {
        std::uint32_t rank = 0;
        std::size_t taken = 0;
        bool heard = false;  // a message of no bytes is one piece, too
        bool finished(std::size_t bytes) const { return heard && taken == bytes; }
    };
    // What a posted leg still expects.
    struct Receive {
        Transfer* transfer = nullptr;
        Phase phase = Phase::in;
        How how = How::copy;
        std::vector<Source> sources;  // in the order of combination
        Nanoseconds since{};
    };

    Peer& peer(std::uint32_t rank);
    bool is_first() const { return placement_.segments().front() == placement_.self(); }
    void greet(Nanoseconds now);
    void on_greeting(Peer& from);
    Neighbours neighbours(const Leg& leg) const;
    void connect(const std::vector<std::uint32_t>& nodes, const topology::Algorithm& algorithm,
                 Neighbours& result) const;
    void post_inward(Transfer& transfer, const Neighbours& near, Nanoseconds now);
    void post_outward(Transfer& transfer, const Neighbours& near, Nanoseconds now);
    bool exchanges(const Leg& leg) const;
    void post_exchange(Transfer& transfer, const Neighbours& near, Nanoseconds now);
    void combine_own(const Transfer& transfer, std::vector<std::byte>& piece, std::size_t offset) const;
    void send_to(std::uint32_t rank, Transfer& transfer, Phase phase, const std::byte* data, Nanoseconds now);
    void expect(Transfer& transfer, Phase phase, const std::vector<std::uint32_t>& from, How how,
                Nanoseconds now);
    bool take(Receive& receive, std::size_t index);
    static std::size_t sendable(const Send& send);
    bool is_due(const Send& send) const;
    bool next_piece(Peer& to, Outgoing& message);
    void settle(Transfer& transfer);
    // Calls with each member that something open waits for, and since when.
    template <class Call>
    void each_awaited(const Call& call) const;

    const Placement& placement_;
    const SiteConfig config_;
    const std::uint32_t piece_bytes_;
    PieceFlow flow_;
    std::deque<Peer> peers_;
    std::vector<Receive> receives_;
    std::list<Transfer> transfers_;                            // of legs posted and not done
    std::shared_ptr<const std::vector<std::byte>> departing_;  // what the last message's payload is in
    std::size_t turn_ = 0;
    int error_ = 0, failure_ = 0;
    bool moved_ = false, greeted_ = false;
    Nanoseconds greet_at_ = kNever, greet_interval_ = kLeastGreetInterval;
};

}  // namespace mcastcoll::levels
