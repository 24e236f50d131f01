// One operation of a group, from the first that is heard of it until everybody has finished it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/bitmap.h"
#include "engine/config.h"
#include "engine/effects.h"
#include "engine/supply_graph.h"

namespace mcastcoll::engine {

enum class SlotState : std::uint8_t {
    vacant,    // nothing is known of the operation
    early,     // something came for it, the application has not posted it yet
    active,    // posted, not finished
    finished,  // done here; kept to supply others until the floor passes it
};

// Somebody this member supplies. The fragments it wants may not be here yet: the question is remembered.
struct Client {
    Rank rank = kNoRank;
    bool expected = false;  // the supply graph says so, not just a message that came before the post
    bool done = false;
    bool waiting = false;  // wanted has a bit set
    WindowBitmap wanted;
    std::uint32_t base = 0;                        // it has everything below
    std::uint32_t wanted_from = 0, wanted_to = 0;  // all set bits of wanted lie in [from, to)
    explicit Client(std::uint32_t window) : wanted(window) {}
    void forget();
};

inline constexpr std::uint32_t kNothingReported = UINT32_MAX;

struct ChildReport {
    Rank rank = kNoRank;
    std::uint32_t fragments = kNothingReported;
};

struct Slot {
    Slot(const GroupConfig& config, MutableBytes stash_bytes);
    // Forgets everything but the memory.
    void reset(OperationId operation);

    OperationId id{};
    SlotState state = SlotState::vacant;
    Operation operation;  // valid from active on
    bool length_known = false;
    std::uint64_t bytes = 0;  // valid when length_known
    std::uint32_t fragments = 0;
    MutableBytes stash;          // unposted fragments of a small message; its copy for repair once finished
    std::byte* early = nullptr;  // the first fragments of a large message that is not posted yet
    bool stashed = false;        // the whole message is in the stash

    // Receiving. [0, base) is here, and what `have` says of [base, base + window).
    std::uint32_t base = 0;
    WindowBitmap have, asked;
    std::uint32_t asked_to = 0;  // nothing from here on was asked for
    std::uint32_t revealed = 0;  // fragments below were multicast, so a hole there is a loss
    bool heard = false;          // a multicast fragment came since the last ask timer
    bool chained = false;        // the multicast is silent: ask for window after window
    bool heard_ever = false;
    Nanoseconds heard_at{};  // when the last multicast fragment came
    Nanoseconds posted_at{};
    Nanoseconds ask_at = kNever;
    Nanoseconds asked_at = kNever;  // of the last ask, to measure the answer; kNever once measured

    // Supplying.
    Rank supplier = kNoRank;
    std::vector<Client> clients;  // capacity kMaxArity + 1, entries reused
    std::uint32_t client_count = 0;

    // Multicasting, as root.
    std::uint32_t next_multicast = 0;
    std::uint32_t acknowledged = 0;  // every hearing member has [0, acknowledged)
    bool everybody_posted = false;

    // Reporting.
    Rank report_to = kNoRank;
    RankList report_children;
    std::array<ChildReport, kMaxArity> reports{};
    std::uint32_t report_count = 0;
    std::uint32_t reported = kNothingReported;
    bool report_due = false;

    // Barrier.
    std::uint32_t gathered = 0;  // children's subtrees that have entered
    bool gather_due = false, gather_sent = false;

    bool done_due = false;  // the supplier is to be told that all is here
    bool ask_due = false;
    std::uint32_t ask_to = 0;   // the next ask covers missing fragments below
    Rank early_root = kNoRank;  // who multicast to us before the post

    bool has(std::uint32_t fragment) const {
        return fragment < base || (fragment - base < have.capacity() && have.test(fragment));
    }
    bool complete_here() const { return length_known && base == fragments; }
    bool is_root(Rank self) const { return operation.root == self; }
    // The entry of a client, made when there is none yet; null when the table is full.
    Client* client(Rank rank);
    // Makes these the clients; forgets others that asked before the post.
    void expect_clients(const RankList& ranks);
    // A child's report, likewise.
    ChildReport* report(Rank rank);
};

}  // namespace mcastcoll::engine
