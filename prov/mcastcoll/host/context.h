// Operation: a request to a team. Context: the state with which a collective runs, and the progress of the
// oldest open operation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "host/clusters.h"
#include "host/memories.h"
#include "host/rings.h"

namespace mcastcoll::host {

constexpr bool is_rooted(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

// An operation of a team. The caller owns it and its buffers, and must not touch either between Team::post()
// and `done`.
struct Operation {
    Kind kind = Kind::barrier;
    std::uint32_t root = 0;  // broadcast, reduce, gather, scatter
    // The message or the result; reduce, gather: at the root only.
    std::byte* buffer = nullptr;
    // The contribution; scatter: at the root only. May overlap the result: the buffer itself (reductions,
    // alltoall), or this member's own block (gather, allgather: its block of the buffer; scatter: the buffer
    // is the root's block of the input).
    const std::byte* input = nullptr;
    std::size_t bytes = 0;  // of the vector, or of one block
    Combiner combiner{};
    // Broadcast, root: number of valid leading bytes of the buffer; raised by the caller.
    std::size_t ready = 0;
    // Broadcast, receivers: number of leading bytes received, which may be forwarded.
    std::size_t arrived = 0;
    bool done = false;
    int error = 0;  // a positive errno; FI_E* have the same numbers
};

// Converts the request of a level or of a blocking call.
inline Operation operation_of(const Collective& collective) {
    return {.kind = collective.kind,
            .root = index_of(collective.root),
            .buffer = collective.buffer,
            .input = collective.input,
            .bytes = collective.bytes,
            .combiner = collective.combiner,
            .ready = std::min<std::size_t>(collective.ready, collective.bytes)};
}

// Whether a reduction has an operator and whole elements.
inline bool is_whole(const Operation& operation) {
    const auto [combine, element_bytes] = operation.combiner;
    return combine != nullptr && element_bytes > 0 && operation.bytes % element_bytes == 0;
}

// The team's thresholds in bytes, from the agreement.
struct Bounds {
    bool crowded = true;                      // more members than cores
    std::size_t single_copy_from = SIZE_MAX;  // broadcasts copied directly between memories
    std::size_t both_copy_from = SIZE_MAX;    // broadcasts of which root and receiver each copy a part
    std::size_t share_from = 0;               // allreduces by shares
    std::size_t reduce_whole = 0;             // reduces of up to this many bytes are combined by the root
    // The other kinds: smallest size that is copied directly between memories.
    std::array<std::size_t, kCollectiveKinds> direct_from;

    Bounds() { direct_from.fill(SIZE_MAX); }
    std::size_t& from(Kind kind) { return direct_from[static_cast<std::size_t>(kind)]; }
    std::size_t from(Kind kind) const { return direct_from[static_cast<std::size_t>(kind)]; }
};

struct TeamCounters {
    std::uint64_t operations = 0, bytes = 0;  // finished operations; their total bytes
    std::uint64_t single_copies = 0, both_copies = 0;
    std::uint64_t yields = 0, sleeps = 0;
};

enum class Advance : std::uint8_t { idle, moved, finished };
// How the data of an operation moves, if all members have to agree: directly between memories, or through
// slots.
enum class Way : std::uint8_t { undecided, direct, slots };

// The progress of the oldest open operation. Its steps start at Context::step.
struct Cursor {
    // This member's progress in the first step: not published yet; published; own slice combined; step left,
    // while peers may still read.
    enum class Phase : std::uint8_t { fresh, published, combined, left };

    Phase phase = Phase::fresh;
    Way way = Way::undecided;
    bool in_place = false;        // some member's result overwrites its input
    bool both = false;            // a broadcast copied by root and receiver together
    bool claimed = false;         // all pieces of such a broadcast are claimed
    std::uint64_t published = 0;  // number of steps published by this member
    std::uint64_t reduced = 0;    // number of steps with a combined share
    std::uint64_t gathered = 0;   // number of steps that were read
    std::size_t within = 0;       // bytes done in the current step, or block
    std::uint32_t next = 0;       // the first unprocessed member in the step being gathered
    // The first unprocessed member in the phase before: offers, inputs of a share, or a cluster's lines.
    std::uint32_t next_seen = 0;
};

struct Context {
    Context(Header& header, const Shape& shape, std::uint32_t own)
        : rings(header, shape, own), self(own), size(shape.members) {}

    Rings rings;
    const std::uint32_t self, size;
    Step step = 1;  // the first step of the oldest open operation
    Cursor cursor;
    Bounds bounds;
    Clusters clusters;
    TeamCounters counters;
    Memories memories{rings};

    // Ends the oldest operation, which took this number of steps.
    Advance finish(std::uint64_t steps) {
        step += steps;
        cursor = {};
        return Advance::finished;
    }
};

inline Advance moved_or_idle(bool moved) {
    return moved ? Advance::moved : Advance::idle;
}

// Repeats `move` while there is progress, until every step is gathered.
template <class Move>
Advance pipeline(Context& c, std::uint64_t steps, const Move& move) {
    bool moved = false;
    for (bool again = true; again; moved |= again) {
        again = move();
        if (c.cursor.gathered == steps) return c.finish(steps);
    }
    return moved_or_idle(moved);
}

// Reads the contributions of `count` members in the step being gathered, continuing where it stopped, and
// then leaves that step. Returns true if there was any progress.
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

// Accepts null pointers for zero bytes, and equal pointers.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

}  // namespace mcastcoll::host
