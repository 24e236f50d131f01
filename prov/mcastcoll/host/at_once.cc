// What is over at once: one line of each member, looked for a few microseconds at most.
#include <algorithm>
#include <cstring>

#include "host/collectives.h"
#include "host/pause.h"

namespace mcastcoll::host {
namespace {

std::uint64_t await_word(Rings& rings, std::uint32_t member, Step step, Kind kind, int looks) {
    for (;;) {
        const std::uint64_t word = rings.look(member, step, kind);
        if (word != 0) [[likely]]
            return word;
        if (--looks == 0) return 0;
        pause();
    }
}

// As gather_one(), which goes on where this one stops.
bool gather_at_once(Context& c, Operation& operation, int looks) {
    const std::size_t bytes = operation.bytes;
    if (!c.rings.may_write_line(c.step)) return false;
    if (bytes > 0) std::memcpy(c.rings.line(c.self, c.step).payload.data(), operation.input, bytes);
    c.rings.publish(c.step, operation.kind, true, bytes);
    c.cursor.phase = Cursor::Phase::published;
    std::uint32_t& next = c.cursor.next;
    for (; next < c.size; ++next) {
        std::uint64_t word = 0;
        if (next != c.self && (word = await_word(c.rings, next, c.step, operation.kind, looks)) == 0)
            return false;
        if (bytes > 0 && !read_one(c, operation, next)) return false;
        if (bytes == 0 && Word::count(word) != 0) return c.rings.mismatch(), false;
    }
    c.rings.all_are_in(c.step);
    c.cursor.phase = Cursor::Phase::fresh;
    next = 0;
    return true;
}

// As a broadcast beside the flag, which also tells those whose lengths differ.
bool broadcast_at_once(Context& c, Operation& operation, int looks) {
    const std::size_t bytes = operation.bytes;
    if (operation.root == c.self) {
        if (operation.ready < bytes || !c.rings.may_write_line(c.step)) return false;
        std::memcpy(c.rings.line(c.self, c.step).payload.data(), operation.buffer, bytes);
        c.rings.publish(c.step, Kind::broadcast, true, bytes);
        return true;
    }
    const std::uint64_t word = await_word(c.rings, operation.root, c.step, Kind::broadcast, looks);
    if (word == 0 || Word::count(word) != bytes || !Word::final(word)) return false;
    std::memcpy(operation.buffer, c.rings.line(operation.root, c.step).payload.data(), bytes);
    operation.arrived = bytes;
    return true;
}

// Whether an allreduce makes sense, and everybody combines all of it for himself, beside the flag.
bool is_for_gather_one(const Context& c, const Operation& operation) {
    const auto [combine, element_bytes] = operation.combiner;
    return combine != nullptr && element_bytes > 0 && operation.bytes > 0 &&
           operation.bytes % element_bytes == 0 &&
           operation.bytes < std::min(c.bounds.share_from, c.bounds.reduce_direct_from);
}

}  // namespace

bool at_once(Context& c, Operation& operation, int looks) {
    if (c.rings.failure() != 0 || operation.bytes > kInlineBytes) return false;
    if (operation.kind == Kind::broadcast) {
        if (operation.bytes == 0 || operation.root >= c.size || !broadcast_at_once(c, operation, looks))
            return false;
    } else if (operation.kind == Kind::barrier) {
        if (!c.clusters.leaders.empty() || operation.bytes > 0 || !gather_at_once(c, operation, looks))
            return false;
    } else if (operation.kind != Kind::allreduce || !is_for_gather_one(c, operation) ||
               !gather_at_once(c, operation, looks)) {
        return false;
    }
    c.rings.leave(c.step);
    ++c.step;
    ++c.counters.operations;
    ++c.counters.inline_steps;
    operation.error = 0;
    operation.done = true;
    return true;
}

}  // namespace mcastcoll::host
