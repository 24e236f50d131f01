// An operation's slot: the state and data that a member keeps of one operation.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/window_bitmap.h"
#include "engine/effects.h"
#include "engine/fragment_set.h"
#include "engine/policy.h"
#include "engine/rank_list.h"

namespace mcastcoll::engine {

enum class SlotState : std::uint8_t {
    vacant,    // no packet of the operation has arrived
    early,     // a packet arrived, the application has not posted yet
    active,    // posted, not finished
    finished,  // done here; kept to supply others until the watermark passes
};

inline constexpr std::uint32_t kNothingReported = UINT32_MAX;
inline constexpr std::uint32_t kNothingTested = UINT32_MAX;

inline constexpr std::uint64_t kNothingAnnounced = UINT64_MAX;

struct Slot {
    // Parts of a slot. Their reset() skips memory that an operation did not use: slots are used in turn, so a
    // slot is in no cache at renewal.

    // A member supplied by this member.
    struct Client {
        FragmentSet wanted;  // includes fragments that are not here yet: the NAK is queued
        Rank rank = kNoRank;
        bool expected = false;  // a client by the supply graph, not only because of a message before the post
        bool done = false;
        bool sent_nak = false;   // sent a NAK, to this member or to the root
        bool served = false;     // some data was sent
        std::uint32_t base = 0;  // has all fragments below
        bool waiting() const { return !wanted.empty(); }
        // The client must be supplied and has not sent `done`.
        bool unserved() const { return expected && !done; }
        void reset() {
            wanted.clear();
            *this = {std::move(wanted)};
        }
    };

    // Fragments that the root must multicast again: `due` are still to send, `named` were sent a short while
    // ago. The root sends multicasts; other members send NAKs to their parent in the report tree.
    struct RootNaks {
        FragmentSet due;
        WindowBitmap named;
        std::uint32_t target = 0;        // on the root: next range for the first fragment due
        Nanoseconds named_until{};       // then `named` is cleared, and missing fragments are named again
        std::uint32_t rounds = 0;        // own NAKs without progress
        std::uint32_t base = 0;          // this member's base at its last NAK
        Nanoseconds sent_at = kNever;    // of the last own NAK, to measure the answer
        Nanoseconds answer_by = kNever;  // when that NAK should be answered
        // Starts a period in which no fragment is named twice, unless a period is in progress.
        void begin_round(Nanoseconds now, Nanoseconds lasts) {
            if (now < named_until) return;
            named.clear_all();
            named_until = now + lasts;
        }
        // Adds a fragment, unless it was sent in this period or is too far from the rest.
        void add(std::uint32_t index) {
            if (!named.test(index)) due.add(index);
        }
        void reset() {
            if (named_until == Nanoseconds{}) return;  // no period has begun, so nothing was added
            due.clear();
            named.clear_all();
            *this = {std::move(due), std::move(named)};
        }
    };

    // Progress reported by a child in the report tree.
    struct ChildReport {
        Rank rank = kNoRank;
        std::uint32_t fragments = kNothingReported;
    };

    // Parts of a vector that a child in the gather tree has sent.
    struct Contribution {
        WindowBitmap have;           // received pieces; all fields but `early` are only for vectors in pieces
        std::byte* early = nullptr;  // a vector that came inside a gather before its turn
        std::uint32_t base = 0;      // pieces below are combined; `have` describes pieces from here on
        std::uint32_t granted = 0;   // pieces below may be sent
        bool credit_due = false;
        void reset() {
            if (granted > 0) have.clear_all();
            *this = {std::move(have)};
        }
    };

    // Reception of an operation by multicast.
    struct Reception {
        std::uint32_t revealed = 0;  // fragments below were multicast, so a hole there is a loss
        bool lately = false;         // a fragment arrived since the NAK timer last ran
        bool ever = false;           // a fragment arrived; for a deaf member, also by message
        Nanoseconds at{};            // time of the last fragment
        Nanoseconds longest_gap{};   // between two fragments
        std::uint32_t count = 0;     // fragments, new or not
        std::uint32_t firsts = 0;    // first multicasts among them
        std::uint32_t stored = 0;    // new fragments among them
        bool partial = false;        // by the last flag, the root lacks a part of the message
        bool whole = false;          // by some flag, the root has the whole message; stays true
        Rank early_root = kNoRank;   // sender of multicasts before the post
    };

    // State of the NAKs to the supplier.
    struct SupplierNaks {
        WindowBitmap requested;
        std::uint32_t requested_to = 0;         // no fragment from here on was requested
        std::uint32_t tested = kNothingTested;  // fragment requested to test whether the multicast works
        std::uint32_t reach = 0;  // number of fragments in the next such NAK; 0: the multicast works
        bool suspected = false;   // with a partial root: a message brought the tested fragment once
        bool chained = false;     // the multicast is silent: request window after window
        bool due = false;
        std::uint32_t to = 0;                // the next NAK covers missing fragments below
        Nanoseconds at = kNever;             // when to send the next NAK
        Nanoseconds sent_at = kNever;        // of the last NAK for a hole; kNever once its answer is measured
        Nanoseconds first_sent_at = kNever;  // of the first unanswered NAK, to measure the repair
        void reset() {
            if (requested_to > 0) requested.clear_all();
            *this = {std::move(requested)};
        }
    };

    // Multicasting, on a root or a relaying leader.
    struct Multicasting {
        std::uint32_t next = 0;
        std::uint32_t target = 0;        // next range for the current fragment
        std::uint32_t acknowledged = 0;  // every receiving member has [0, acknowledged)
        bool held = false;               // root synchronisation: must not start yet
        bool entered = false;            // the drawn member has entered
        bool entered_due = false;        // this member was drawn and must report its entry
        bool degraded = false;           // a NAK named a fragment that was multicast
        std::uint32_t copies = 0;        // copies of the whole message still to send
        std::uint32_t copied = 0;        // sent fragments of the current copy
        bool copy_waits = false;         // the time for the copy has not come
        // The block whose last fragment was sent: its first fragment, the next parity row, and the number of
        // rows.
        std::uint32_t parity_of = 0, parity_row = 0, parity_rows = 0;
        bool parity_due() const { return parity_row < parity_rows; }
        bool copies_due() const { return copies > 0 && !copy_waits; }
        // The fragment was multicast, and a member may lack it.
        bool may_repeat(std::uint32_t fragment) const { return fragment >= acknowledged && fragment < next; }
    };

    // Progress of this member's subtree in the report tree.
    struct Reporting {
        Rank parent = kNoRank;
        RankList children;
        std::array<ChildReport, kMaxArity> reports{};
        std::uint32_t count = 0;                    // used entries of `reports`
        std::uint32_t reported = kNothingReported;  // last progress sent to the parent
        bool due = false;
        // A child's report, added if new; null if the table is full.
        ChildReport* of(Rank child);
        void reset() {
            parent = kNoRank;
            children = {};
            count = 0;
            reported = kNothingReported;
            due = false;
        }
    };

    struct Gathering {
        std::vector<Contribution> contributions;  // by child in the gather tree
        // Children in the gather tree whose subtrees have contributed; bit i for child i.
        std::uint32_t gathered = 0;
        bool due = false, sent = false;
        bool awaits_release = false;                        // rank 0: the caller has the buffer
        std::uint64_t announced_total = kNothingAnnounced;  // total of a message before the post
        std::uint32_t combined = 0;     // number of combined vectors that came inside gathers
        bool own_combined = false;      // this member's vector is combined
        std::uint32_t pieces = 0;       // number of pieces of a longer vector
        std::uint32_t piece_bytes = 0;  // of each piece but the last
        std::uint32_t contributed = 0;  // pieces sent to the parent
        std::uint32_t credit = 0;       // pieces that the parent accepts
        bool announce_due = false;      // report to the parent that this member waits for a credit
        bool announced = false;
        void reset() {
            for (Contribution& contribution : contributions) contribution.reset();
            *this = {std::move(contributions)};
        }
    };

    // children: in the gather tree.
    Slot(const GroupConfig& config, std::uint32_t children);
    // Resets the slot but keeps its memory.
    void reset(OperationId operation);

    OperationId id{};
    SlotState state = SlotState::vacant;
    Collective operation;  // valid from state active on
    bool length_known = false;
    std::uint64_t bytes = 0;  // valid if length_known
    std::uint32_t fragments = 0;
    // Fragments of a small message; after the end, its copy for repairs. See Slots::buffer().
    std::byte* retransmit_buffer = nullptr;
    std::byte* early = nullptr;      // the first fragments of a large message that is not posted yet
    bool retained = false;           // the whole message is in the retransmit buffer
    bool lingers = false;            // a complete large message that a peer may still need
    std::byte* late_copy = nullptr;  // copy of a large message, for peers that may still need it
    Nanoseconds posted_at{};
    Nanoseconds progress_at{};  // last progress
    RepairMode repair_mode;

    // [0, base) is here; `have` describes [base, base + window).
    std::uint32_t base = 0;
    WindowBitmap have;
    Reception reception;
    Rank supplier = kNoRank;
    std::uint32_t parity_rows = 0;  // rows kept for its blocks
    bool done_due = false;          // report to the supplier that all is here
    SupplierNaks naks;
    RootNaks root_naks;
    Rank named_root = kNoRank;    // root named by NAKs before the post
    std::vector<Client> clients;  // capacity kMaxArity + 1, entries reused
    std::uint32_t client_count = 0;
    Multicasting multicasting;
    Reporting reporting;
    Gathering gathering;

    bool has(std::uint32_t fragment) const {
        return fragment < base || (fragment - base < have.capacity() && have.test(fragment));
    }
    bool complete_here() const { return length_known && base == fragments; }
    // The caller has received the completion although a peer may still need the data (Core::finish_early()).
    bool completed_early() const { return late_copy != nullptr; }
    // The data may still be requested, and is here as far as received.
    bool offers() const { return state == SlotState::active || retained; }
    // Fragments may overtake each other: a root that had the whole message before still has it, whatever an
    // older flag says.
    void note_partial(bool now_partial) {
        reception.whole |= !now_partial;
        reception.partial = !reception.whole;
    }
    std::span<Client> known_clients() { return {clients.data(), client_count}; }
    std::span<const Client> known_clients() const { return {clients.data(), client_count}; }
    bool has_waiting_client() const { return std::ranges::any_of(known_clients(), &Client::waiting); }
    // The gather state has been used.
    bool gathered() const {
        return gathers(operation.kind) || gathering.announced_total != kNothingAnnounced;
    }
    // The entry of a client, added if new; null if the table is full.
    Client* client(Rank rank);
    // The entry of a client; null if there is none.
    Client* find_client(Rank rank);
    // Makes these ranks the clients; removes other ranks that sent a NAK before the post.
    void expect_clients(const RankList& ranks);
};

}  // namespace mcastcoll::engine
