// Scatter: the root publishes everybody's block.
//
// What fits lies beside the flag, or in the root's own slot, all in one step. Larger blocks go piece by
// piece, each member's into *that member's* slot of the step: nobody else has a use for his during a scatter.
// The root says how many members' pieces are there, so that the first ones need not wait for the last.
#include <algorithm>
#include <cstring>

#include "host/team.h"

namespace mcastcoll::host {
namespace {

// From so many bytes on telling each member that its piece is there costs less than its waiting.
constexpr std::size_t kTellFrom = 2048;

}  // namespace

Team::Advance Team::scatter(Operation& operation) {
    const bool in_line = operation.bytes * size_ <= kInlineBytes;
    const bool together = in_line || operation.bytes * size_ <= slot_bytes_;
    const std::uint64_t steps = together ? 1 : (operation.bytes + slot_bytes_ - 1) / slot_bytes_;
    bool moved = false;
    while (course_.published < steps) {
        const Step step = step_ + course_.published;
        const std::size_t offset = course_.published * slot_bytes_;
        const std::size_t bytes = std::min(operation.bytes - offset, together ? SIZE_MAX : slot_bytes_);
        if (operation.root == self_) {
            if (!may_write(step, in_line ? kLines : slots_)) break;
            fill_blocks(operation, offset, bytes, step, in_line, together);
        } else {
            if (!take_block(operation, offset, bytes, step, in_line, together)) break;
        }
        leave(step);
        ++(in_line ? counters_.inline_steps : counters_.slot_steps);
        ++course_.published;
        moved = true;
    }
    if (course_.published == steps) return finish(operation, steps);
    return moved ? Advance::moved : Advance::idle;
}

void Team::fill_blocks(const Operation& operation, std::size_t offset, std::size_t bytes, Step step,
                       bool in_line, bool together) {
    Line& line = line_of(self_, step);
    line.extent.store(operation.bytes, std::memory_order_relaxed);
    std::byte* slot = in_line ? line.payload.data() : slot_of(self_, step);
    for (std::uint32_t member = 0; member < size_ && bytes > 0; ++member) {
        const std::byte* from = operation.input + member * operation.bytes + offset;
        if (member == self_) {
            if (operation.buffer + offset != from) std::memcpy(operation.buffer + offset, from, bytes);
            continue;
        }
        std::memcpy(together ? slot + member * bytes : slot_of(member, step), from, bytes);
        if (!together && bytes >= kTellFrom) publish(step, Kind::scatter, false, member + 1);
    }
    publish(step, Kind::scatter, true, size_);
}

bool Team::take_block(Operation& operation, std::size_t offset, std::size_t bytes, Step step, bool in_line,
                      bool together) {
    const std::uint64_t word = look(operation.root, step, Kind::scatter);
    if (word == 0) return false;
    const Line& line = line_of(operation.root, step);
    if (line.extent.load(std::memory_order_relaxed) != operation.bytes) return mismatch(), false;
    if (Word::count(word) <= self_) {
        blocker_ = operation.root;
        return false;
    }
    if (bytes == 0) return true;
    const std::byte* slot = in_line ? line.payload.data() : slot_of(operation.root, step);
    std::memcpy(operation.buffer + offset, together ? slot + self_ * bytes : slot_of(self_, step), bytes);
    return true;
}

}  // namespace mcastcoll::host
