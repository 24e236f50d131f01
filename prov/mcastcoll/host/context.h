// Operation: what is to be done. Context: what a collective is carried out with, and how far the oldest open
// operation has come.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/rings.h"

namespace mcastcoll::host {

constexpr bool is_rooted(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

// What a team can be asked for. The caller owns an operation and its buffers, and leaves both alone from
// Team::post() until `done`.
struct Operation {
    Kind kind = Kind::barrier;
    std::uint32_t root = 0;  // broadcast, reduce, gather, scatter
    // Where the message is or the result goes; reduce, gather: the root's only.
    std::byte* buffer = nullptr;
    // Everybody's contribution; scatter: the root's only. May be where the result goes (reductions, alltoall:
    // the buffer), or the part of it that stays with this member (gather, allgather: its block of the buffer;
    // scatter: the buffer is the root's block of the input).
    const std::byte* input = nullptr;
    std::size_t bytes = 0;  // of the vector, or of one block
    Combiner combiner{};
    // Broadcast, root: how much of the buffer is there already; the caller raises it.
    std::size_t ready = 0;
    // Broadcast, others: how much of the buffer is there already, to be passed on.
    std::size_t arrived = 0;
    bool done = false;
    int error = 0;  // a positive errno; FI_E* have the same numbers
};

// What a level or a blocking call was asked for, as the team's.
inline Operation operation_of(const Collective& asked) {
    return {.kind = asked.kind,
            .root = index_of(asked.root),
            .buffer = asked.buffer,
            .input = asked.input,
            .bytes = asked.bytes,
            .combiner = asked.combiner,
            .ready = std::min<std::size_t>(asked.ready, asked.bytes)};
}

// Whether a reduction can combine what it has: whole elements.
inline bool is_whole(const Operation& operation) {
    const auto [combine, element_bytes] = operation.combiner;
    return combine != nullptr && element_bytes > 0 && operation.bytes % element_bytes == 0;
}

// What everybody goes by, from the agreement of all.
struct Bounds {
    bool crowded = true;                      // more members than cores
    std::size_t single_copy_from = SIZE_MAX;  // a broadcast
    std::size_t both_copy_from = SIZE_MAX;    // one of which both copy a part
    std::size_t share_from = 0;               // an allreduce that is computed by shares
    std::size_t reduce_whole = 0;             // reduces of up to so many bytes are the root's work
    // The other kinds, straight between memories.
    std::array<std::size_t, kCollectiveKinds> direct_from;

    Bounds() { direct_from.fill(SIZE_MAX); }
    std::size_t& from(Kind kind) { return direct_from[static_cast<std::size_t>(kind)]; }
    std::size_t from(Kind kind) const { return direct_from[static_cast<std::size_t>(kind)]; }
};

// Copying straight between the memories of two processes (Linux: process_vm_readv, process_vm_writev).
//
// The kernel looks a process up by its number, and numbers are used again. So each transfer also reads the
// peer's nonce, a random word at an address that the peer told: one call reads from one process only, and
// another than the peer does not have the word there. So do members that are threads of one process: of an
// address that is none the kernel says so, and a copy by hand would end the process.
struct RemoteMemory {
    std::uint32_t pid = 0;
    std::uint64_t nonce_address = 0;
    std::uint64_t nonce = 0;
};

// At most kCopyAtOnce (collectives.h) in one call. 0, or the errno: ESRCH when it is not the peer (any more),
// EPERM when the kernel does not let us.
int copy_from(const RemoteMemory& peer, std::uint64_t address, void* to, std::size_t bytes);
// The same in the other direction; the peer must have shown within microseconds that it lives.
int copy_to(const RemoteMemory& peer, std::uint64_t address, const void* from, std::size_t bytes);
// Whether this peer's memory can be read.
bool can_copy_from(const RemoteMemory& peer);
// A word that is the same for processes whom the kernel treats alike where one reads another's memory: their
// users, groups, capabilities, namespaces and security label. 0: that does not tell, as under Yama, which
// asks who descends from whom.
std::uint64_t own_credentials();

// Those of a team. What goes wrong there is told to all of it.
class Memories {
  public:
    // So many simply try each other: that costs less than to find out one's credentials.
    static constexpr std::uint32_t kMaxAllMet = 64;

    explicit Memories(Rings& rings) : rings_(rings) {}

    // When everybody's card is there: whether this member can read from all of them. In large teams it tries
    // those that are 1, 2, 4 ... places away, when its credentials are the first member's, and cannot when
    // they are not. When credentials do not tell, it tries everybody.
    bool can_read_all(std::uint32_t self, std::uint32_t size) const;
    RemoteMemory of(std::uint32_t member) const {
        const Card& card = rings_.card(member);
        return {card.pid, card.nonce_address, card.nonce};
    }
    // False when the team has failed: the owner of a failed operation's buffer may have used it again,
    // whatever was copied since.
    bool read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes);
    // False when it fails.
    bool write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes);

  private:
    void fail(std::uint32_t member, int code);

    Rings& rings_;
};

// Members near each other (NUMA nodes, shared caches), and who leads them through a barrier.
struct Clusters {
    using Ids = std::vector<std::uint32_t>;

    // By member, its leader. `ids` are each member's clusters, outside in; may be empty. Of the levels the
    // one that leaves a leader the fewest lines to read; everybody leads himself where none is worth it.
    static Ids choose_leaders(const std::vector<Ids>& ids, std::uint32_t members);
    static Clusters of(std::uint32_t self, const Ids& leader_of);

    Ids leaders{};       // none: everybody reads everybody's line
    Ids led{};           // by this member, but itself
    bool leads = false;  // this member does
};

struct TeamCounters {
    std::uint64_t operations = 0, bytes = 0;  // that have ended; of their messages, vectors or blocks
    std::uint64_t single_copies = 0, both_copies = 0;
    std::uint64_t yields = 0, sleeps = 0;
};

enum class Advance : std::uint8_t { idle, moved, finished };
// Straight between memories or through slots, where all have to agree on it.
enum class Way : std::uint8_t { undecided, direct, slots };

// Where the oldest open operation stands. Its steps begin at Context::step.
struct Cursor {
    // What this member has done in the first step: nothing; published; combined its slice for the others;
    // left it, while others may still read.
    enum class Phase : std::uint8_t { fresh, published, combined, left };

    Phase phase = Phase::fresh;
    Way way = Way::undecided;
    bool in_place = false;        // somebody's result goes where its input is
    bool both = false;            // a broadcast that root and receiver copy
    bool claimed = false;         // ... of which no piece is left
    std::uint64_t published = 0;  // steps that this member has published
    std::uint64_t reduced = 0;    // steps of which it has computed its share
    std::uint64_t gathered = 0;   // steps that it has read
    std::size_t within = 0;       // bytes of the present step, or block
    std::uint32_t next = 0;       // the first member not yet dealt with in the step to be gathered
    std::uint32_t next_seen = 0;  // the same in what comes before that: offers, inputs of a share, a cluster
};

struct Context {
    Context(Header& header, const Shape& shape, std::uint32_t own)
        : rings(header, shape, own), self(own), size(shape.members) {}

    Rings rings;
    const std::uint32_t self, size;
    Step step = 1;  // the first of the oldest open operation
    Cursor cursor;
    Bounds bounds;
    Clusters clusters;
    TeamCounters counters;
    Memories memories{rings};

    // The oldest operation is over, after so many steps.
    Advance finish(std::uint64_t steps) {
        step += steps;
        cursor = {};
        return Advance::finished;
    }
};

inline Advance moved_or_idle(bool moved) {
    return moved ? Advance::moved : Advance::idle;
}

// Carries on while something moves, until all steps are gathered.
template <class Move>
Advance pipeline(Context& c, std::uint64_t steps, const Move& move) {
    bool moved = false;
    for (bool again = true; again; moved |= again) {
        again = move();
        if (c.cursor.gathered == steps) return c.finish(steps);
    }
    return moved_or_idle(moved);
}

// Reads what so many others have published in the step to be gathered, from where it has stopped, and leaves
// that step. True when something moved.
template <class Read>
bool read_each(Context& c, std::uint32_t count, const Read& read) {
    Cursor& at = c.cursor;
    bool moved = false;
    for (; at.next < count; ++at.next, moved = true)
        if (!read(at.next)) return moved;
    c.rings.leave(c.step + at.gathered++);
    at.next = 0;
    return true;
}

// Of nothing from nowhere, and where both are the same, too.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace mcastcoll::host
