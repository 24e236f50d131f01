#include "host/team.h"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "host/liveness.h"

namespace mcastcoll::host {
Team::~Team() {
    // Nobody writes into a buffer that its owner has back.
    while (!window_.empty() && !is_withdrawn(window_.oldest())) ::sched_yield();
    peers_[self_].card->stage.store(Stage::left, std::memory_order_seq_cst);
    if (!formed_ && self_ == 0) segment_->unlink();
    alarm_.published();
}

int Team::post(Operation& operation) {
    if (is_rooted(operation.kind) && operation.root >= size_) return EINVAL;
    const bool reduces = is_reduction(operation.kind);
    const std::size_t element_bytes = operation.combiner.element_bytes;
    if (reduces && operation.bytes > 0 &&
        (operation.combiner.combine == nullptr || element_bytes == 0 || operation.bytes % element_bytes != 0))
        return EINVAL;
    if (window_.full()) return EAGAIN;
    operation.done = false;
    operation.error = 0;
    operation.arrived = 0;
    // An element that is larger than a slot cannot be cut.
    if (reduces && operation.bytes > 0 && element_bytes > slot_bytes_) return EMSGSIZE;
    if (failure() != 0) {
        end(operation, failure());
        return 0;
    }
    const bool is_first = window_.empty();
    window_.add(operation);
    if (is_first) progress();
    return 0;
}

bool Team::progress() {
    if (window_.empty()) return false;
    bool moved = false;
    if (formed_ || formed()) [[likely]] {
        while (!window_.empty()) {
            const Advance outcome = advance(window_.oldest());
            if (outcome == Advance::idle) break;
            moved = true;
            if (outcome == Advance::moved) break;
        }
    }
    if (moved) {
        detector_.on_progress();
        backoff_.on_progress();
        return true;
    }
    if (alarm_.failure() != 0) [[unlikely]]
        return end_all();
    if (detector_.on_idle()) look_after_blocker();
    return false;
}

Team::Advance Team::advance(Operation& operation) {
    switch (operation.kind) {
        case Kind::broadcast:
            return broadcast(operation);
        case Kind::barrier:
            return leaders_.empty() ? gather_one(operation) : barrier(operation);
        case Kind::reduce:
            // One vector of each for the root alone: worth a share only when it does not fit in a slot.
            return operation.bytes > reduce_whole_ ? reduce_shares(operation) : gather_one(operation);
        case Kind::allreduce:
        case Kind::reduce_scatter:
            return combine_vectors(operation);
        case Kind::allgather:
        case Kind::gather:
        case Kind::scatter:
        case Kind::alltoall:
            return move_blocks(operation);
    }
    return Advance::idle;
}

// The oldest operation is over, after so many steps.
Team::Advance Team::finish(Operation&, std::uint64_t steps) {
    step_ += steps;
    course_ = {};
    end(window_.take(), 0);
    return Advance::finished;
}

void Team::end(Operation& operation, int error) {
    ++counters_.operations;
    if (error != 0) ++counters_.failed_operations;
    operation.error = error;
    operation.done = true;
}

bool Team::end_all() {
    const int error = failure();
    if (!is_withdrawn(window_.oldest())) return false;
    course_ = {};
    while (!window_.empty()) end(window_.take(), error);
    return true;
}

void Team::fail(int error, std::uint32_t lost) {
    alarm_.fail(error, lost);
}

void Team::mismatch() {
    alarm_.fail(EMSGSIZE);
}

// Whoever waits directly for a member that is gone poisons the team; those who wait for somebody else hear of
// it.
void Team::look_after_blocker() {
    if (!detector_.is_due(monotonic_now())) return;
    ++counters_.liveness_checks;
    const Card& card = *peers_[blocker_].card;
    const Stage stage = card.stage.load(std::memory_order_acquire);
    if (blocker_ == self_ || stage < Stage::attached) return;
    if (stage == Stage::left || !is_alive(card.pid, card.start_time)) alarm_.fail(ECONNRESET, blocker_);
}

bool Team::raise_watermark(Step step, std::uint64_t ring) {
    Step least = step;
    for (std::uint32_t member = 0; member < size_; ++member) {
        const Step left = peers_[member].left->step.load(std::memory_order_acquire);
        if (left >= least) continue;
        least = left;
        blocker_ = member;
    }
    watermark_ = least;
    return watermark_ + ring > step;
}

Nanoseconds Team::next_deadline() {
    return window_.empty() ? kNever : detector_.next_deadline(monotonic_now());
}

std::string Team::explain() const {
    if (!formed_) return fmt::format("team {}: {} members, not all here", name(), size_);
    const Agreement& agreement = header_.agreement;
    const auto from = [](std::size_t bytes) {
        return bytes == SIZE_MAX ? std::string("no size") : fmt::format("{} bytes", bytes);
    };
    std::string text = fmt::format(
        "team {}: {} members on {} cores ({}), {} KiB shared, {} slots of {} bytes each; broadcasts up to {} "
        "bytes "
        "beside the flag, larger ones through slots, straight between processes from {}, by both from {}; "
        "blocks "
        "straight from {} (scatter: an eighth of that), allreduce and reduce_scatter from {}, allreduces by "
        "shares "
        "from {} bytes; barriers {}; sleepers {}",
        name(), size_, agreement.cores,
        backoff_.is_crowded() ? "crowded: who waits yields" : "room for all: who waits spins",
        segment_->bytes() / 1024, slots_, slot_bytes_, kInlineBytes, from(single_copy_from_),
        from(both_copy_from_), from(blocks_direct_from_), from(reduce_direct_from_), share_from_,
        leaders_.empty() ? "flat" : fmt::format("through {} leaders of clusters", leaders_.size()),
        agreement.membarrier != 0 ? "use membarrier" : "cost a fence per message");
    if (single_copy_from_ == SIZE_MAX)
        return text + "; nothing straight, since the kernel or the settings forbid copying between processes";
    if (agreement.out_ps_per_kib == 0) return text + "; bounds by rule, not measured";
    return text +
           fmt::format(
               "; bounds from measurement: a single copy {:.2f} us and {:.3f} us a KiB, a slot {:.3f} in and "
               "{:.3f} us a KiB out",
               agreement.call_ps * 1e-6, agreement.direct_ps_per_kib * 1e-6, agreement.in_ps_per_kib * 1e-6,
               agreement.out_ps_per_kib * 1e-6);
}

}  // namespace mcastcoll::host
