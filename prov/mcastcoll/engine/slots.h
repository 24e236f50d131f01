// The operations of a group that a member still knows, each in a slot, from the first that is heard of it
// until everybody has finished it; and which of them is to send next.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/bitmap.h"
#include "engine/effects.h"
#include "engine/policy.h"
#include "engine/pool.h"
#include "engine/supply_graph.h"
#include "wire/bytes.h"

namespace mcastcoll::engine {

enum class SlotState : std::uint8_t {
    vacant,    // nothing is known of the operation
    early,     // something came for it, the application has not posted it yet
    active,    // posted, not finished
    finished,  // done here; kept to supply others until the watermark passes it
};

// What follows is parts of a slot. reset() leaves memory alone that an operation did not use: slots are taken
// in turn, so that it is in no cache.

// Fragments that are to be sent; no two are further apart than the window.
struct FragmentSet {
    WindowBitmap bits;
    std::uint32_t from = 0, to = 0;  // all set bits lie in [from, to)
    // Not an aggregate: within another one g++ 12 frees the bits twice when a later member throws.
    explicit FragmentSet(std::uint32_t window) : bits(window) {}
    bool empty() const { return from >= to; }
    // False: it is too far from the others.
    bool add(std::uint32_t index);
    // The first of them, or `to`; the one behind `index`.
    std::uint32_t first() { return from = bits.find_set(from, to); }
    std::uint32_t after(std::uint32_t index) const { return bits.find_set(index + 1, to); }
    void drop_below(std::uint32_t index) {
        while (from < std::min(index, to)) bits.clear(from++);
    }
    void clear() {
        if (to > 0) bits.clear_all();
        from = to = 0;
    }
};

// Calls with each fragment that the bitmap of a question names, `from` being its first bit.
template <typename Use>
void for_each_named(Bytes bitmap, std::uint32_t from, Use use) {
    for (std::uint32_t i = 0; i < bitmap.size() * 8 && i < UINT32_MAX - from; ++i)
        if (wire::test_bit(bitmap.data(), i)) use(from + i);
}

// Somebody this member supplies.
struct Client {
    FragmentSet wanted;  // some may not be here yet: the question is remembered
    Rank rank = kNoRank;
    bool expected = false;  // the supply graph says so, not just a message that came before the post
    bool done = false;
    bool asked = false;      // it asked, or was told a NACK
    bool served = false;     // it was sent something
    std::uint32_t base = 0;  // it has everything below
    bool waiting() const { return !wanted.empty(); }
    // It is to be supplied, and has not said that it has everything.
    bool unserved() const { return expected && !done; }
    void reset() {
        wanted.clear();
        *this = {std::move(wanted)};
    }
};

// Fragments that the root is to multicast again: what is to be said, and what was said a short while ago. A
// root says it with multicasts, all others to their parent in the report tree.
struct Nacks {
    FragmentSet due;
    WindowBitmap said;
    std::uint32_t target = 0;        // as root: the address that is next for the first of them
    Nanoseconds said_until{};        // then said is forgotten: what is still missing is asked for again
    std::uint32_t rounds = 0;        // own ones without any gain
    std::uint32_t base = 0;          // what this member had in the last one
    Nanoseconds asked_at = kNever;   // of the last own one, to measure the answer
    Nanoseconds answer_by = kNever;  // when it should have been answered
    // Nothing is said twice for so long; then all may be.
    void begin_round(Nanoseconds now, Nanoseconds lasts) {
        if (now < said_until) return;
        said.clear_all();
        said_until = now + lasts;
    }
    // Notes one that was not said already, unless it is too far from the others.
    void add(std::uint32_t index) {
        if (!said.test(index)) due.add(index);
    }
    void reset() {
        if (said_until == Nanoseconds{}) return;  // nothing was added before a round
        due.clear();
        said.clear_all();
        *this = {std::move(due), std::move(said)};
    }
};

inline constexpr std::uint32_t kNothingReported = UINT32_MAX;
inline constexpr std::uint32_t kNothingPolled = UINT32_MAX;

struct ChildReport {
    Rank rank = kNoRank;
    std::uint32_t fragments = kNothingReported;
};

// What a child in the gather tree has sent of a vector.
struct Contribution {
    WindowBitmap have;           // of one that travels in pieces, as all that follows but this:
    std::byte* early = nullptr;  // one that came inside a gather before it was its turn
    std::uint32_t base = 0;      // pieces below are combined, and what `have` says of those from here on
    std::uint32_t granted = 0;   // pieces below may be sent
    bool credit_due = false;
    void reset() {
        if (granted > 0) have.clear_all();
        *this = {std::move(have)};
    }
};

inline constexpr std::uint64_t kNothingTold = UINT64_MAX;

// What was heard of an operation by multicast.
struct Hearing {
    std::uint32_t revealed = 0;  // fragments below were multicast, so a hole there is a loss
    bool lately = false;         // since the last ask timer
    bool ever = false;           // or, of the deaf, brought by a message
    Nanoseconds at{};            // the last time
    Nanoseconds longest_gap{};   // between two fragments
    std::uint32_t count = 0;     // fragments, new or not
    std::uint32_t firsts = 0;    // of these, such as were not multicast before
    std::uint32_t stored = 0;    // and such as were new
    bool partial = false;        // the root was heard not to have all of it yet ...
    bool whole = false;          // ... or to have all, which stays true
    Rank early_root = kNoRank;   // who multicast to us before the post
};

// What its supplier is asked for.
struct Asking {
    WindowBitmap asked;
    std::uint32_t asked_to = 0;             // nothing from here on was asked for
    std::uint32_t polled = kNothingPolled;  // asked for to learn whether the multicast still carries
    std::uint32_t reach = 0;                // fragments in such a question; 0: the multicast carries
    bool doubted = false;                   // of a partial one: a message brought what was polled, once
    bool chained = false;                   // the multicast is silent: ask for window after window
    bool due = false;
    std::uint32_t to = 0;                 // the next ask covers missing fragments below
    Nanoseconds at = kNever;              // when to ask
    Nanoseconds asked_at = kNever;        // of the last ask, to measure the answer; kNever once measured
    Nanoseconds first_asked_at = kNever;  // of the first ask not answered, to measure the repair
    void reset() {
        if (asked_to > 0) asked.clear_all();
        *this = {std::move(asked)};
    }
};

// As root, or as a relay.
struct Multicasting {
    std::uint32_t next = 0;
    std::uint32_t target = 0;        // of the ranges that the next one goes to
    std::uint32_t acknowledged = 0;  // every hearing member has [0, acknowledged)
    bool held = false;               // root synchronisation: not yet
    bool entered = false;            // the member that was drawn has entered
    bool entered_due = false;        // this member was drawn and is to say so
    bool troubled = false;           // somebody asked for what was multicast
    std::uint32_t copies = 0;        // so many more times all of it is to be sent, when all was sent
    std::uint32_t copied = 0;        // fragments of the present copy that were sent
    bool copy_waits = false;         // it is not time for it yet
    // Of the block whose last fragment went out: its first one, and rows of its parity that are to follow.
    std::uint32_t parity_of = 0, parity_row = 0, parity_rows = 0;
    bool parity_due() const { return parity_row < parity_rows; }
    bool copies_due() const { return copies > 0 && !copy_waits; }
    // It was sent, and somebody may lack it.
    bool may_repeat(std::uint32_t fragment) const { return fragment >= acknowledged && fragment < next; }
};

// What this member's subtree has of it.
struct Reporting {
    Rank parent = kNoRank;
    RankList children;
    std::array<ChildReport, kMaxArity> heard{};
    std::uint32_t count = 0;
    std::uint32_t told = kNothingReported;
    bool due = false;
    // A child's report, made when there is none yet; null when there is no room.
    ChildReport* of(Rank child);
    void reset() {
        parent = kNoRank;
        children = {};
        count = 0;
        told = kNothingReported;
        due = false;
    }
};

struct Gathering {
    std::vector<Contribution> contributions;  // by child in the gather tree
    std::uint32_t gathered = 0;  // children in the gather tree whose subtrees are all here: bit i for child i
    bool due = false, sent = false;
    bool awaits_release = false;        // rank 0: the caller has it
    std::uint64_t told = kNothingTold;  // before the post, which vector it is about
    std::uint32_t combined = 0;         // of the vectors that came inside gathers, how many are combined
    bool own_combined = false;          // and this member's own
    std::uint32_t pieces = 0;           // of a longer vector
    std::uint32_t piece_bytes = 0;      // of each but the last
    std::uint32_t contributed = 0;      // sent to the parent
    std::uint32_t credit = 0;           // that the parent takes
    bool announce_due = false;          // the parent is to know that this member waits for a credit
    bool announced = false;
    void reset() {
        for (Contribution& contribution : contributions) contribution.reset();
        *this = {std::move(contributions)};
    }
};

struct Slot {
    // children: in the gather tree.
    Slot(const GroupConfig& config, std::uint32_t children);
    // Forgets everything but the memory.
    void reset(OperationId operation);

    OperationId id{};
    SlotState state = SlotState::vacant;
    Collective operation;  // valid from active on
    bool length_known = false;
    std::uint64_t bytes = 0;  // valid when length_known
    std::uint32_t fragments = 0;
    // Fragments of a small message as they come; its copy for repairs once it is finished. See
    // Slots::buffer().
    std::byte* retransmit_buffer = nullptr;
    std::byte* early = nullptr;      // the first fragments of a large message that is not posted yet
    bool retained = false;           // the whole message is in the retransmit buffer
    bool lingers = false;            // a large one is here, and somebody may still need it
    std::byte* late_copy = nullptr;  // of it, for them
    Nanoseconds posted_at{};
    Nanoseconds progress_at{};  // when it last came closer to its end
    RepairPlan plan;

    // [0, base) is here, and what `have` says of [base, base + window).
    std::uint32_t base = 0;
    WindowBitmap have;
    Hearing hearing;
    Rank supplier = kNoRank;
    std::uint32_t parity_rows = 0;  // of its blocks, that wait for more of them
    bool done_due = false;          // it is to be told that all is here
    Asking asking;
    Nacks nacks;
    Rank nack_root = kNoRank;     // of those told before the post
    std::vector<Client> clients;  // capacity kMaxArity + 1, entries reused
    std::uint32_t client_count = 0;
    Multicasting multicasting;
    Reporting reporting;
    Gathering gathering;

    bool has(std::uint32_t fragment) const {
        return fragment < base || (fragment - base < have.capacity() && have.test(fragment));
    }
    bool complete_here() const { return length_known && base == fragments; }
    // Its caller has gone on already.
    bool told() const { return late_copy != nullptr; }
    // Its bytes may still be asked for, and are here as far as they have come.
    bool offers() const { return state == SlotState::active || retained; }
    // Fragments overtake each other: a root that once had everything has it.
    void note_partial(bool now_partial) {
        hearing.whole |= !now_partial;
        hearing.partial = !hearing.whole;
    }
    std::span<Client> known_clients() { return {clients.data(), client_count}; }
    std::span<const Client> known_clients() const { return {clients.data(), client_count}; }
    bool has_waiting_client() const { return std::ranges::any_of(known_clients(), &Client::waiting); }
    // Something of a gather was heard or done: its record is not as it was made.
    bool gathered() const { return gathers(operation.kind) || gathering.told != kNothingTold; }
    // The entry of a client, made when there is none yet; null when the table is full.
    Client* client(Rank rank);
    // The same, but made no new one.
    Client* find_client(Rank rank);
    // Makes these the clients; forgets others that asked before the post.
    void expect_clients(const RankList& ranks);
};

// Something that is to be done about an operation.
struct Timed {
    OperationId operation{};
    Nanoseconds at{};
};

// Operations [first_kept, first_kept + size) have a slot. Those below `next` have been posted here, those
// below `first_open` are finished here, and those below `first_kept` everywhere: nobody can ask for them any
// more.
class Slots {
  public:
    // children: in the gather tree.
    Slots(const GroupConfig& config, std::uint32_t children);

    std::size_t size() const { return slots_.size(); }
    // The one that this operation has, or had, or will have.
    Slot& at(std::uint64_t operation) { return slots_[operation % slots_.size()]; }
    const Slot& at(std::uint64_t operation) const { return slots_[operation % slots_.size()]; }
    // The same, made new when it was another's.
    Slot& take(OperationId operation) {
        Slot& slot = at(number_of(operation));
        if (slot.id != operation) renew(slot, operation);
        return slot;
    }
    // Memory for one early vector of each child in each slot.
    Pool& vectors() { return vectors_; }
    // The slot's retransmit buffer, until everybody has finished its operation. There is one for each slot;
    // what was used last is used next, so that only as many are ever written as were needed at a time.
    std::byte* buffer(Slot& slot) {
        if (slot.retransmit_buffer == nullptr) slot.retransmit_buffer = buffers_.take();
        return slot.retransmit_buffer;
    }
    // Memory for copies of large messages that somebody is late with.
    Pool& late_copies() { return late_copies_; }
    // It has been posted, and not everybody has finished it.
    bool posted(OperationId operation) const {
        return number_of(operation) >= kept_ && number_of(operation) < next_;
    }
    // Null when its slot is another's; or when it is not posted, or finished here.
    Slot* find(OperationId operation) {
        Slot& slot = at(number_of(operation));
        return slot.id == operation ? &slot : nullptr;
    }
    Slot* find_active(OperationId operation) {
        Slot* const slot = find(operation);
        return slot != nullptr && slot->state == SlotState::active ? slot : nullptr;
    }

    std::uint64_t first_kept() const { return kept_; }
    std::uint64_t first_open() const { return open_; }
    std::uint64_t next() const { return next_; }
    // No operation from here on has a slot yet.
    std::uint64_t end() const { return kept_ + slots_.size(); }
    bool has(std::uint64_t operation) const { return operation >= kept_ && operation < end(); }

    // An operation is posted: its number.
    std::uint64_t post() { return next_++; }
    // After one has finished here; after all have.
    void close_finished() {
        while (open_ < next_ && at(open_).state == SlotState::finished) ++open_;
    }
    void close_all() { open_ = next_; }
    // The first kept one is finished everywhere: who asks for it is late.
    void release_first() {
        Slot& slot = at(kept_++);
        buffers_.give_back(slot.retransmit_buffer);
        slot.retained = false;
    }

    // Something of this operation was heard before it was posted; and no such one from `early_end` on.
    void note_early(std::uint64_t operation) { early_end_ = std::max(early_end_, operation + 1); }
    std::uint64_t early_end() const { return early_end_; }

  private:
    void renew(Slot& slot, OperationId operation);

    Pool buffers_, vectors_, late_copies_;
    std::vector<Slot> slots_;
    std::uint64_t kept_ = 0, open_ = 0, next_ = 0, early_end_ = 0;
};

// Which operations may have something to send, and whose turn it is: operations pass each other freely, and a
// long broadcast does not hold up a short one.
class Turns {
  public:
    // What an operation does with its turn.
    enum class Use : std::uint8_t { sent, waits, idle };  // idle: it has nothing to send until it is marked

    // slots: a power of two, as many operations as there may be at a time.
    explicit Turns(std::uint32_t slots) : marked_(slots) {}

    void mark(std::uint64_t operation) {
        marked_.set(static_cast<std::uint32_t>(operation % marked_.capacity()));
    }
    // Offers its turn to each in order, by a number that is its operation's modulo the slots, until one
    // sends.
    template <typename Offer>
    bool next(Offer offer) {
        const std::uint32_t bits = marked_.capacity();  // a multiple of the slots
        for (std::uint32_t at = marked_.find_set(turn_, turn_ + bits); at < turn_ + bits;
             at = marked_.find_set(at + 1, turn_ + bits)) {
            const Use use = offer(at);
            if (use == Use::sent) return turn_ = (at + 1) % bits, true;
            if (use == Use::idle) marked_.clear(at);
        }
        return false;
    }

  private:
    WindowBitmap marked_;     // by operation, modulo its size
    std::uint32_t turn_ = 0;  // whose it is
};

}  // namespace mcastcoll::engine
