// Large reductions, straight between memories: each member combines its slice of all inputs, which it reads
// where they are, in rank order.
//
//     offer      everybody: where the input is, where the result is going to be
//     combine    piece by piece: the first member's, then the second's over it ...; a piece lies in the cache
//     (reduce_scatter ends here)
//     told       "my slice is done" (the line is published again, final)
//     collect    allreduce: as they are done, everybody else's slice, out of their results
//     left       nobody reads from this member any more
//
// An allreduce may have its input where the result goes: a slice of a buffer is written by its owner only
// after everything else that is read of it, since whoever writes another's slice into its own buffer has
// heard that the other is done with it. Only the own slice must not be overwritten before its turn comes: it
// grows in own slots, of which nobody has any use now. A reduce_scatter's result would overwrite what others
// read: then through slots.
#include <algorithm>
#include <cstring>

#include "host/offer.h"
#include "host/team.h"
#include "reduce/slices.h"

namespace mcastcoll::host {
namespace {

constexpr std::size_t kCopyAtOnce = std::size_t{1} << 20;

}  // namespace

// The next piece of the own slice, into `result`; false when the team has failed.
bool Team::combine_piece(const Operation& operation, const Share& slice, std::byte* result) {
    const std::size_t element_bytes = operation.combiner.element_bytes;
    // Half of the own slots to grow in, half for what comes.
    const std::size_t half = slots_ * slot_bytes_ / 2 / 64 * 64;
    const std::size_t bytes = std::min(half / element_bytes * element_bytes, slice.bytes - course_.within);
    const std::size_t offset = slice.begin + course_.within;
    std::byte* incoming = peers_[self_].slots + half;
    const bool apart = operation.input == operation.buffer;
    std::byte* grows = apart ? peers_[self_].slots : result + course_.within;
    for (std::uint32_t member = 0; member < size_; ++member) {
        const std::byte* from = operation.input + offset;
        if (member != self_) {
            Offer offer;
            if (!see_offer(member, operation, offer)) return false;
            std::byte* to = member == 0 ? grows : incoming;
            const int code = copy_from(peers_[member].memory, offer.address + offset, to, bytes);
            if (code != 0 || failure() != 0) return copy_failed(member, code), false;
            counters_.single_copy_bytes += bytes;
            from = to;
        } else if (member == 0) {
            std::memcpy(grows, from, bytes);
        }
        if (member != 0) operation.combiner(grows, from, bytes);
    }
    if (apart) std::memcpy(result + course_.within, grows, bytes);
    course_.within += bytes;
    return true;
}

// What everybody has the result of, or a slice.
Team::Advance Team::combine_vectors(Operation& operation) {
    const bool scatters = operation.kind == Kind::reduce_scatter;
    if (operation.bytes >= reduce_direct_from_ && size_ > 1) {
        const Agreed agreed = agree_on_direct(operation, !scatters);
        if (agreed == Agreed::not_yet) return Advance::idle;
        if (agreed == Agreed::direct) return reduce_directly(operation);
    }
    if (scatters) return operation.bytes > slot_bytes_ ? reduce_scatter(operation) : gather_one(operation);
    return operation.bytes >= share_from_ ? reduce_shares(operation) : gather_one(operation);
}

Team::Advance Team::reduce_directly(Operation& operation) {
    const std::size_t element_bytes = operation.combiner.element_bytes;
    const auto slice_for = [&](std::uint32_t member) {
        const Slice slice = slice_of(member, size_, operation.bytes / element_bytes, element_bytes);
        return Share{slice.offset, slice.bytes};
    };
    const bool scatters = operation.kind == Kind::reduce_scatter;
    std::size_t budget = kCopyAtOnce;
    if (course_.reduced == 0) {
        const Share own = slice_for(self_);
        std::byte* result = operation.buffer + (scatters ? 0 : own.begin);
        while (course_.within < own.bytes) {
            const std::size_t before = course_.within;
            if (!combine_piece(operation, own, result)) return Advance::idle;
            const std::size_t read = (course_.within - before) * (size_ - 1);
            budget -= std::min(budget, read);
            if (budget == 0 && course_.within < own.bytes) return Advance::moved;
        }
        course_.within = 0;
        course_.reduced = 1;
        if (!scatters) publish(step_, operation.kind, true, 0);
        course_.next = scatters ? size_ : 1;
    }
    for (; course_.next < size_; ++course_.next) {
        const std::uint32_t member = (self_ + course_.next) % size_;
        if (budget == 0) return Advance::moved;
        if (!Word::final(look(member, step_, operation.kind))) {
            blocker_ = member;
            return budget < kCopyAtOnce ? Advance::moved : Advance::idle;
        }
        Offer offer;
        if (!see_offer(member, operation, offer)) return Advance::idle;
        const Share slice = slice_for(member);
        if (!pull(member, offer.result + slice.begin, operation.buffer + slice.begin, slice.bytes, budget))
            return failure() != 0 ? Advance::idle : Advance::moved;
    }
    if (!course_.left) leave(step_);
    course_.left = true;
    return await_readers(operation, 0, size_);
}

}  // namespace mcastcoll::host
