// Context: what a collective is carried out with, and how far the oldest open operation has come.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/rings.h"

namespace mcastcoll::host {

// What everybody goes by, from the agreement of all.
struct Bounds {
    bool crowded = true;                      // more members than cores
    std::size_t single_copy_from = SIZE_MAX;  // a broadcast
    std::size_t both_copy_from = SIZE_MAX;    // one of which both copy a part
    std::size_t share_from = 0;               // an allreduce that is computed by shares
    std::size_t reduce_whole = 0;             // reduces of up to so many bytes are the root's work
    // The other kinds, straight between memories.
    std::array<std::size_t, kKinds> direct_from = never();

    std::size_t& from(Kind kind) { return direct_from[static_cast<std::size_t>(kind)]; }
    std::size_t from(Kind kind) const { return direct_from[static_cast<std::size_t>(kind)]; }
    static constexpr std::array<std::size_t, kKinds> never() {
        std::array<std::size_t, kKinds> all{};
        all.fill(SIZE_MAX);
        return all;
    }
};

// Copying straight between the memories of two processes (Linux: process_vm_readv, process_vm_writev).
//
// The kernel looks a process up by its number, and numbers are used again. So each transfer also reads the
// peer's nonce, a random word at an address that the peer told: one call reads from one process only, and
// another than the peer does not have the word there. Members that are threads of one process copy by memcpy.
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

// Those of a team. What goes wrong there is told to all of it.
class Memories {
  public:
    Memories(Rings& rings, std::uint64_t& copied_bytes) : rings_(rings), copied_bytes_(copied_bytes) {}

    // When everybody's card is there: who they are, and whether this member can read from all of them.
    bool meet(std::uint32_t self, std::uint32_t size, bool may_copy);
    const RemoteMemory& of(std::uint32_t member) const { return peers_[member]; }
    // False when the team has failed: the owner of a failed operation's buffer may have used it again,
    // whatever was copied since.
    bool read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes);
    // False when it fails.
    bool write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes);

  private:
    void fail(std::uint32_t member, int code);

    Rings& rings_;
    std::uint64_t& copied_bytes_;
    std::vector<RemoteMemory> peers_;
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
    std::uint64_t operations = 0, failed_operations = 0;
    std::uint64_t inline_steps = 0, slot_steps = 0;  // carried beside the flag, and through slots
    std::uint64_t single_copies = 0, both_copies = 0, single_copy_bytes = 0;
    std::uint64_t yields = 0, sleeps = 0, liveness_checks = 0;
    std::uint64_t moves = 0;  // away from a core that another member had, too
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
    Context(Header& header, std::uint32_t own) : rings(header, own), self(own), size(header.size) {}

    Rings rings;
    const std::uint32_t self, size;
    Step step = 1;  // the first of the oldest open operation
    Cursor cursor;
    Bounds bounds;
    Clusters clusters;
    TeamCounters counters;
    Memories memories{rings, counters.single_copy_bytes};

    // The oldest operation is over, after so many steps.
    Advance finish(std::uint64_t steps) {
        step += steps;
        cursor = {};
        return Advance::finished;
    }
    // This member has read all of the present step.
    bool leave_gathered() {
        rings.leave(step + cursor.gathered++);
        cursor.next = 0;
        return true;
    }
    void count_step(bool in_line) { ++(in_line ? counters.inline_steps : counters.slot_steps); }
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

// Of nothing from nowhere, and where both are the same, too.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace mcastcoll::host
