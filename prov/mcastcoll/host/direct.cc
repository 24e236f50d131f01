// Large blocks, straight between memories: whoever needs a block copies it out of its owner's input.
//
// One step. Members whose input others read offer its address, everybody copies what it needs, leaves the
// step, and waits until all who read from it have left, too: only then may its input change again. Members
// begin with their right neighbour and go round, so that not all read from one at the same time.
//
//     gather       the root reads everybody's           allgather   everybody reads everybody's
//     scatter      everybody reads its block of the root's input    alltoall    of everybody's
//
// Nobody writes into another's memory here, so that an operation that fails may end at once: what was read
// from a member that had its buffer back already was read after the failure was told, which is looked at
// after each copy.
#include <algorithm>
#include <cstring>

#include "host/offer.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

// What one call of progress() copies at most.
constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20;

std::uint64_t address_of(const std::byte* data) {
    return reinterpret_cast<std::uintptr_t>(data);
}

}  // namespace

bool Team::publish_offer(const Operation& operation) {
    if (!may_write(step_, kLines)) return false;
    Line& line = line_of(self_, step_);
    const Offer offer{address_of(operation.input), operation.bytes, 0, address_of(operation.buffer),
                      operation.input == operation.buffer};
    std::memcpy(line.payload.data(), &offer, sizeof offer);
    line.extent.store(operation.bytes, std::memory_order_relaxed);
    publish(step_, operation.kind, false, 0);
    course_.begun = true;
    ++counters_.single_copies;
    return true;
}

// False when it is not there yet, or does not fit.
bool Team::see_offer(std::uint32_t member, const Operation& operation, Offer& offer) {
    if (look(member, step_, operation.kind) == 0) return false;
    const Line& line = line_of(member, step_);
    std::memcpy(&offer, line.payload.data(), sizeof offer);
    if (line.extent.load(std::memory_order_relaxed) != operation.bytes || offer.bytes != operation.bytes)
        return mismatch(), false;
    return true;
}

// Offers, and waits until everybody has. Where a member's input is its result, copying would change what
// others are still to read: then all of them see that, leave the step, and go through slots.
Team::Agreed Team::agree_on_direct(const Operation& operation, bool may_be_in_place) {
    if (course_.through_slots) return Agreed::slots;
    if (!course_.begun && !publish_offer(operation)) return Agreed::not_yet;
    for (; course_.next_reduced < size_; ++course_.next_reduced) {
        Offer offer;
        if (!see_offer(course_.next_reduced, operation, offer)) return Agreed::not_yet;
        course_.in_place = course_.in_place || offer.in_place != 0;
    }
    watermark_ = std::max(watermark_, step_);
    if (!course_.in_place || may_be_in_place) return Agreed::direct;
    leave(step_++);
    course_ = {};
    course_.through_slots = true;
    return Agreed::slots;
}

// Copies `bytes` from the member's memory, piece by piece, until the budget is used up; true when all are
// there.
bool Team::pull(std::uint32_t member, std::uint64_t from, std::byte* to, std::size_t bytes,
                std::size_t& budget) {
    while (course_.within < bytes && budget > 0) {
        const std::size_t part = std::min(bytes - course_.within, budget);
        const int code = copy_from(peers_[member].memory, from + course_.within, to + course_.within, part);
        // A failed operation's owner may have used its buffer again, whatever was copied from it since.
        if (code != 0 || failure() != 0) return copy_failed(member, code), budget = 0, false;
        course_.within += part;
        budget -= part;
        counters_.single_copy_bytes += part;
    }
    if (course_.within < bytes) return false;
    course_.within = 0;
    return true;
}

Team::Advance Team::move_blocks(Operation& operation) {
    // Through slots a scatter's root copies all blocks, one after the other; straight, everybody its own.
    const std::size_t from = operation.kind == Kind::scatter && blocks_direct_from_ != SIZE_MAX
                                 ? std::max(blocks_direct_from_ / 8, kInlineBytes + 1)
                                 : blocks_direct_from_;
    const bool direct = operation.bytes >= from && size_ > 1;
    switch (operation.kind) {
        case Kind::gather:
        case Kind::allgather:
            if (direct) return copy_blocks(operation);
            return operation.bytes <= kInlineBytes ? gather_one(operation) : gather_blocks(operation);
        case Kind::scatter:
            return direct ? copy_blocks(operation) : scatter(operation);
        case Kind::alltoall:
            break;
        case Kind::broadcast:
        case Kind::barrier:
        case Kind::reduce:
        case Kind::allreduce:
        case Kind::reduce_scatter:
            return Advance::idle;  // these move no blocks
    }
    if (!direct) return alltoall(operation);
    switch (agree_on_direct(operation, false)) {
        case Agreed::not_yet:
            return Advance::idle;
        case Agreed::direct:
            return copy_blocks(operation);
        case Agreed::slots:
            break;
    }
    return alltoall(operation);
}

Team::Advance Team::copy_blocks(Operation& operation) {
    if (!course_.begun && !publish_offer(operation)) return Advance::idle;
    const bool gathers = operation.kind == Kind::gather, scatters = operation.kind == Kind::scatter;
    const bool from_all = gathers ? operation.root == self_ : !scatters;
    const bool to_all = scatters ? operation.root == self_ : !gathers;
    const std::size_t bytes = operation.bytes;
    const std::size_t offset = scatters || operation.kind == Kind::alltoall ? self_ * bytes : 0;
    const std::uint32_t sources = from_all ? size_ : scatters ? 1 : 0;
    std::size_t budget = kCopyAtOnce;
    for (; course_.next < sources; ++course_.next) {
        const std::uint32_t member = from_all ? (self_ + course_.next) % size_ : operation.root;
        std::byte* to = operation.buffer + (from_all ? member * bytes : 0);
        if (member == self_) {
            if (to != operation.input + offset) std::memcpy(to, operation.input + offset, bytes);
            continue;
        }
        if (budget == 0) return Advance::moved;
        Offer offer;
        if (!see_offer(member, operation, offer))
            return budget < kCopyAtOnce ? Advance::moved : Advance::idle;
        if (!pull(member, offer.address + offset, to, bytes, budget))
            return failure() != 0 ? Advance::idle : Advance::moved;
    }
    if (!course_.left) leave(step_);
    course_.left = true;
    return await_readers(operation, to_all ? 0 : operation.root, to_all ? size_ : operation.root + 1);
}

// The last of a direct operation: those members read from this one, and have not all left.
Team::Advance Team::await_readers(Operation& operation, std::uint32_t begin, std::uint32_t end) {
    // The others have finished with this member's memory as soon as they leave, or never look at it.
    const bool is_read = (operation.kind != Kind::gather || operation.root != self_) &&
                         (operation.kind != Kind::scatter || operation.root == self_);
    course_.published = std::max<std::uint64_t>(course_.published, begin);
    for (; is_read && course_.published < end; ++course_.published) {
        const auto reader = static_cast<std::uint32_t>(course_.published);
        if (peers_[reader].left->step.load(std::memory_order_acquire) > step_) continue;
        blocker_ = reader;
        return Advance::idle;
    }
    return finish(operation, 1);
}

}  // namespace mcastcoll::host
