// Broadcast: from the root's buffer to everybody's, by the way that its length asks for.
//
// Up to kInlineBytes lie beside the flag: one line of the cache carries both. The root is done when it has
// written.
//
// Through slots, a step carries as much as *everybody's* slots of that step hold: nobody else has a use for
// his during a broadcast. The root says after each piece how much there is, and readers follow. Whether slots
// are free is asked per step only.
//
// Straight from memory: the root tells its buffer's address, the others copy from there, and the root waits
// until all have left. `extent` is how much of it there is, which grows while the root itself is still
// receiving.
#include <errno.h>

#include <algorithm>
#include <cstring>

#include "host/liveness.h"
#include "host/offer.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

// What one call of progress() copies at most, so that the caller's other work goes on: with a core each, root
// and readers would else keep each other busy to the end.
constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20;

std::uint64_t steps_at_once(std::size_t step_bytes) {
    return std::max<std::size_t>(1, kCopyAtOnce / step_bytes);
}

}  // namespace

Team::Advance Team::broadcast(Operation& operation) {
    if (operation.bytes <= kInlineBytes) return broadcast_inline(operation);
    if (operation.bytes < single_copy_from_)
        return operation.root == self_ ? send_slots(operation) : take_slots(operation);
    return operation.root == self_ ? offer_memory(operation) : take_memory(operation);
}

Team::Advance Team::broadcast_inline(Operation& operation) {
    const std::size_t bytes = operation.bytes;
    if (operation.root == self_) {
        if (operation.ready < bytes || !may_write(step_, kLines)) return Advance::idle;
        if (bytes > 0) std::memcpy(line_of(self_, step_).payload.data(), operation.buffer, bytes);
        publish(step_, Kind::broadcast, true, bytes);
    } else {
        const std::uint64_t word = look(operation.root, step_, Kind::broadcast);
        if (word == 0) return Advance::idle;
        if (Word::count(word) != bytes || !Word::final(word)) return mismatch(), Advance::idle;
        if (bytes > 0) std::memcpy(operation.buffer, line_of(operation.root, step_).payload.data(), bytes);
        operation.arrived = bytes;
    }
    leave(step_);
    ++counters_.inline_steps;
    return finish(operation, 1);
}

std::size_t Team::step_capacity() const {
    return std::min<std::size_t>(size_ * slot_bytes_, Word::kMaxCount / slot_bytes_ * slot_bytes_);
}

// Copies what the root has by now into the present step's slots; false when it has no more.
bool Team::fill_slots(Operation& operation, std::size_t offset, std::size_t step_bytes) {
    const Step step = step_ + course_.published;
    const std::size_t there = std::min(operation.ready - std::min(operation.ready, offset), step_bytes);
    bool moved = false;
    while (course_.within < there) {
        const std::size_t in_slot = course_.within % slot_bytes_;
        const std::size_t part = std::min(there - course_.within, slot_bytes_ - in_slot);
        const auto member = static_cast<std::uint32_t>(course_.within / slot_bytes_);
        std::memcpy(slot_of(member, step) + in_slot, operation.buffer + offset + course_.within, part);
        course_.within += part;
        publish(step, Kind::broadcast, course_.within == step_bytes, course_.within);
        moved = true;
    }
    return moved;
}

Team::Advance Team::send_slots(Operation& operation) {
    const std::size_t capacity = step_capacity();
    const std::uint64_t most = steps_at_once(capacity);
    bool moved = false;
    for (std::uint64_t round = 0; round < most; ++round) {
        const Step step = step_ + course_.published;
        const std::size_t offset = course_.published * capacity;
        const std::size_t step_bytes = std::min(capacity, operation.bytes - offset);
        if (course_.within == 0) {
            if (!may_write(step, slots_)) break;
            line_of(self_, step).extent.store(operation.bytes, std::memory_order_relaxed);
        }
        moved |= fill_slots(operation, offset, step_bytes);
        if (course_.within < step_bytes) break;
        leave(step);
        ++counters_.slot_steps;
        ++course_.published;
        course_.within = 0;
        if (offset + step_bytes == operation.bytes) return finish(operation, course_.published);
    }
    return moved ? Advance::moved : Advance::idle;
}

Team::Advance Team::take_slots(Operation& operation) {
    const std::size_t capacity = step_capacity();
    const std::uint64_t most = steps_at_once(capacity);
    bool moved = false;
    for (std::uint64_t round = 0; round < most; ++round) {
        const Step step = step_ + course_.gathered;
        const std::size_t offset = course_.gathered * capacity;
        const std::size_t step_bytes = std::min(capacity, operation.bytes - offset);
        const std::uint64_t word = look(operation.root, step, Kind::broadcast);
        if (word == 0) break;
        const std::size_t there = Word::count(word);
        const Line& line = line_of(operation.root, step);
        if (line.extent.load(std::memory_order_relaxed) != operation.bytes || there > step_bytes)
            return mismatch(), Advance::idle;
        if (there == course_.within) break;
        while (course_.within < there) {
            const std::size_t in_slot = course_.within % slot_bytes_;
            const std::size_t part = std::min(there - course_.within, slot_bytes_ - in_slot);
            const auto member = static_cast<std::uint32_t>(course_.within / slot_bytes_);
            std::memcpy(operation.buffer + offset + course_.within, slot_of(member, step) + in_slot, part);
            course_.within += part;
        }
        operation.arrived = offset + course_.within;
        moved = true;
        if (course_.within < step_bytes) continue;
        leave(step);
        ++counters_.slot_steps;
        ++course_.gathered;
        course_.within = 0;
        if (operation.arrived == operation.bytes) return finish(operation, course_.gathered);
    }
    return moved ? Advance::moved : Advance::idle;
}

Team::Advance Team::offer_memory(Operation& operation) {
    Line& line = line_of(self_, step_);
    bool moved = false;
    if (!course_.begun) {
        if (!may_write(step_, kLines)) return Advance::idle;
        course_.both = may_both_copy(operation) && operation.ready == operation.bytes;
        const Offer offer{reinterpret_cast<std::uintptr_t>(operation.buffer), operation.bytes, course_.both};
        std::memcpy(line.payload.data(), &offer, sizeof offer);
        course_.within = operation.ready;
        line.extent.store(operation.ready, std::memory_order_release);
        publish(step_, Kind::broadcast, true, 0);
        course_.begun = true;
        moved = true;
    } else if (operation.ready > course_.within) {
        course_.within = operation.ready;
        line.extent.store(operation.ready, std::memory_order_release);
        alarm_.published();
        moved = true;
    }
    if (course_.both) moved |= write_pieces(operation);
    for (; course_.next < size_; ++course_.next) {
        if (course_.next == self_) continue;
        if (peers_[course_.next].left->step.load(std::memory_order_acquire) > step_) continue;
        blocker_ = course_.next;
        return moved ? Advance::moved : Advance::idle;
    }
    leave(step_);
    ++counters_.single_copies;
    return finish(operation, 1);
}

Team::Advance Team::take_memory(Operation& operation) {
    const std::uint64_t word = look(operation.root, step_, Kind::broadcast);
    if (word == 0) return Advance::idle;
    const Line& line = line_of(operation.root, step_);
    Offer offer;
    std::memcpy(&offer, line.payload.data(), sizeof offer);
    const std::size_t there = line.extent.load(std::memory_order_acquire);
    if (offer.bytes != operation.bytes || there > operation.bytes) return mismatch(), Advance::idle;
    if (offer.both != 0 && may_both_copy(operation)) return read_pieces(operation, offer.address);
    if (Word::count(word) != 0) return mismatch(), Advance::idle;
    if (there == operation.arrived) {
        blocker_ = operation.root;
        return Advance::idle;
    }
    const std::size_t part = std::min(there - operation.arrived, kCopyAtOnce);
    const int code = copy_from(peers_[operation.root].memory, offer.address + operation.arrived,
                               operation.buffer + operation.arrived, part);
    // A failed operation's root may have used its buffer again, whatever was copied from it since.
    if (code != 0 || failure() != 0) return copy_failed(operation.root, code), Advance::idle;
    operation.arrived += part;
    counters_.single_copy_bytes += part;
    if (operation.arrived < operation.bytes) return Advance::moved;
    leave(step_);
    ++counters_.single_copies;
    return finish(operation, 1);
}

void Team::copy_failed(std::uint32_t member, int code) {
    if (code == 0) return;
    const Card& card = *peers_[member].card;
    const bool gone = code == ESRCH || !is_alive(card.pid, card.start_time);
    alarm_.fail(gone ? ECONNRESET : code, member);
}

}  // namespace mcastcoll::host
