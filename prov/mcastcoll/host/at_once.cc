// Barriers, small broadcasts and small allreduces that are over at once: one line of each member, looked for
// a few microseconds at most. What takes longer goes the way of all operations, from where it stands.
#include <algorithm>
#include <cstring>

#include "host/pause.h"
#include "host/team.h"

namespace mcastcoll::host {

bool Team::await_word(std::uint32_t member, Kind kind, std::uint64_t& word) {
    for (int left = backoff_.looks();;) {
        word = look(member, step_, kind);
        if (word != 0) [[likely]]
            return true;
        if (--left == 0) return false;
        pause();
    }
}

// As gather_one(), which goes on where this one stops.
bool Team::gather_at_once(Operation& operation) {
    const std::size_t bytes = operation.bytes;
    if (!may_write(step_, kLines)) return false;
    if (bytes > 0) std::memcpy(line_of(self_, step_).payload.data(), operation.input, bytes);
    publish(step_, operation.kind, true, bytes);
    course_.begun = true;
    for (; course_.next < size_; ++course_.next) {
        std::uint64_t word;
        if (course_.next != self_ && !await_word(course_.next, operation.kind, word)) return false;
        if (bytes > 0 && !read_one(operation, course_.next, step_)) return false;
        if (bytes == 0 && course_.next != self_ && Word::count(word) != 0) return mismatch(), false;
    }
    watermark_ = std::max(watermark_, step_);
    course_.begun = false;
    course_.next = 0;
    return true;
}

// As broadcast_inline(), which also tells those whose lengths differ.
bool Team::broadcast_at_once(Operation& operation) {
    const std::size_t bytes = operation.bytes;
    if (operation.root == self_) {
        if (operation.ready < bytes || !may_write(step_, kLines)) return false;
        std::memcpy(line_of(self_, step_).payload.data(), operation.buffer, bytes);
        publish(step_, Kind::broadcast, true, bytes);
        return true;
    }
    std::uint64_t word;
    if (!await_word(operation.root, Kind::broadcast, word)) return false;
    if (Word::count(word) != bytes || !Word::final(word)) return false;
    std::memcpy(operation.buffer, line_of(operation.root, step_).payload.data(), bytes);
    operation.arrived = bytes;
    return true;
}

// Whether an allreduce makes sense, and everybody combines all of it for himself, beside the flag.
bool Team::is_for_gather_one(const Operation& operation) const {
    const auto [combine, element_bytes] = operation.combiner;
    return combine != nullptr && element_bytes > 0 && operation.bytes > 0 &&
           operation.bytes % element_bytes == 0 &&
           operation.bytes < std::min(share_from_, reduce_direct_from_);
}

bool Team::at_once(Operation& operation) {
    if (!formed_ || !window_.empty() || failure() != 0 || operation.bytes > kInlineBytes) return false;
    if (operation.kind == Kind::broadcast) {
        if (operation.bytes == 0 || operation.root >= size_ || !broadcast_at_once(operation)) return false;
    } else if (operation.kind == Kind::barrier) {
        if (!leaders_.empty() || operation.bytes > 0 || !gather_at_once(operation)) return false;
    } else if (operation.kind != Kind::allreduce || !is_for_gather_one(operation) ||
               !gather_at_once(operation)) {
        return false;
    }
    leave(step_);
    ++step_;
    ++counters_.operations;
    ++counters_.inline_steps;
    operation.error = 0;
    operation.done = true;
    return true;
}

}  // namespace mcastcoll::host
