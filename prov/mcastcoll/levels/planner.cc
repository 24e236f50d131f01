#include "levels/planner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {
namespace {

// Open parts per chain. A part must be posted before its data arrives, but not long before: members send NAKs
// for awaited data after a silence.
constexpr std::uint32_t kOpenPerChain = 2;

void or_bytes(void* out, const void* one, const void* other, std::size_t bytes) {
    const auto *first = static_cast<const std::byte*>(one), *second = static_cast<const std::byte*>(other);
    for (std::size_t i = 0; i < bytes; ++i) static_cast<std::byte*>(out)[i] = first[i] | second[i];
}

}  // namespace

Planner::Planner(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t max_open,
                 Owner& owner, Selection selection)
    : placement_(placement),
      selection_(std::move(selection)),
      owner_(owner),
      hierarchy_(placement, levels, max_open, *this),
      composites_(max_open) {}

// The selection's choice, unless this group lacks a required level.
Choice Planner::decide(const Request& request) const {
    Choice choice = selection_.decide(request.kind, longest(request));
    if (placement_.hosts() == 1) {
        choice = {};
    } else if (choice.algorithm == Algorithm::messages && request.kind == Kind::allgather &&
               !hierarchy_.supports(Kind::allgather)) {
        choice = {Algorithm::chains, kUsualChains};
    } else if (choice.algorithm == Algorithm::split && !hierarchy_.supports(Kind::reduce_scatter)) {
        choice = {};
    }
    return choice;
}

int Planner::submit(const Request& request, Nanoseconds now) {
    if (error_ != 0) return error_;
    const Choice choice = decide(request);
    const bool direct = choice.algorithm == Algorithm::levels || choice.algorithm == Algorithm::messages;
    if (direct && !hierarchy_.supports(request.kind)) return ENOSYS;
    if (next_ - first_open_ == composites_.size()) return EAGAIN;
    if (open_ == 0) base_ = next_;  // reuses memory that is in the cache
    CompositeOperation& composite = at(next_);
    composite = {.request = request, .choice = choice, .scratch = std::move(composite.scratch)};
    note_choice(request, choice);
    if (!direct) set_up(composite);
    ++next_;
    ++open_;
    post_parts(now);
    return 0;
}

void Planner::note_choice(const Request& request, const Choice& choice) {
    const std::size_t bit =
        static_cast<std::size_t>(request.kind) * kAlgorithms + static_cast<std::size_t>(choice.algorithm);
    if ((noted_ >> bit & 1U) != 0) return;
    noted_ |= std::uint64_t{1} << bit;
    news_ = News{request.kind, choice, longest(request)};
}

// Converts a request into the form of its parts, and copies this member's block into place.
void Planner::set_up(CompositeOperation& composite) {
    Request& request = composite.request;
    const std::size_t result = longest(request);
    if (result == 0) {  // no data moves, but a member that disagrees about the length must be detected
        request.kind = Kind::barrier;
        composite.choice = {};
        return;
    }
    if (composite.choice.algorithm != Algorithm::reduction) return set_up_chains(composite);
    ++counters_.reductions;
    const std::uint32_t self = placement_.self();
    std::byte* place = request.buffer + self * request.bytes;
    if (request.input != place) std::memcpy(place, request.input, request.bytes);
    std::fill(request.buffer, place, std::byte{});
    std::fill(place + request.bytes, request.buffer + result, std::byte{});
    request.kind = Kind::allreduce;
    request.input = request.buffer;
    request.bytes = result;
    request.combiner = {&or_bytes, 1};
}

void Planner::set_up_chains(CompositeOperation& composite) {
    const Request& request = composite.request;
    const std::uint32_t self = placement_.self(), chains = composite.choice.chains;
    const bool split = composite.choice.algorithm == Algorithm::split;
    ++(split ? counters_.splits : counters_.chains);
    composite.parts = placement_.members() + (split ? 1 : 0);
    composite.window = kOpenPerChain * chains + (split ? 1 : 0);
    composite.awaiting_slice = split;
    const std::size_t own_bytes = block_bytes(composite, self);
    counters_.block_bytes_broadcast += own_bytes;
    if (own_bytes == 0) return;
    composite.own = self + (split ? 1 : 0);
    if (self >= chains) {
        composite.awaited = composite.own - chains;
        composite.awaiting_part = true;
    }
    if (split) {
        if (request.input == request.buffer && composite.scratch.size() < own_bytes)
            composite.scratch.resize(own_bytes);
        return;
    }
    const std::size_t offset = self * own_bytes;
    if (request.input != request.buffer + offset)
        std::memcpy(request.buffer + offset, request.input, own_bytes);
}

std::size_t Planner::block_bytes(const CompositeOperation& composite, std::uint32_t root) const {
    return composite.choice.algorithm == Algorithm::split ? slice_for(composite, root).bytes
                                                          : composite.request.bytes;
}

reduce::Slice Planner::slice_for(const CompositeOperation& composite, std::uint32_t member) const {
    const std::size_t element_bytes = composite.request.combiner.element_bytes;
    return reduce::slice_of(member, placement_.members(), composite.request.bytes / element_bytes,
                            element_bytes);
}

// Builds the reduce_scatter of a split. For an in-place allreduce the slice is combined in scratch memory,
// because its place still holds contributions.
Request Planner::scatter_part(CompositeOperation& composite) const {
    Request part = composite.request;
    part.kind = Kind::reduce_scatter;
    const reduce::Slice own = slice_for(composite, placement_.self());
    const bool in_place = part.input == part.buffer && own.bytes > 0;
    part.buffer = in_place ? composite.scratch.data() : part.buffer + own.offset;
    return part;
}

// Builds the next part.
Request Planner::part_of(CompositeOperation& composite) const {
    const std::uint32_t part = composite.posted;
    const bool split = composite.choice.algorithm == Algorithm::split;
    if (split && part == 0) return scatter_part(composite);
    Request request = composite.request;
    if (composite.parts == 1) return request;
    request.kind = Kind::broadcast;
    request.root = rank_of(part - (split ? 1 : 0));
    request.bytes = block_bytes(composite, index_of(request.root));
    request.buffer += composite.next_offset;
    request.input = nullptr;
    if (part == composite.own && !composite.may_begin()) request.ready = 0;
    return request;
}

// Posts parts in the order of operations, and in each in the order of its parts, as long as there is room.
bool Planner::post_parts(Nanoseconds now) {
    bool moved = false;
    while (next_to_post_ < next_ && hierarchy_.error() == 0) {
        CompositeOperation& composite = at(next_to_post_);
        while (composite.posted < composite.parts && composite.posted - composite.ended < composite.window) {
            Request part = part_of(composite);
            part.cookie =
                static_cast<std::uint64_t>(&composite - composites_.data()) << 32 | composite.posted;
            const bool empty = composite.parts > 1 && part.bytes == 0;
            const int error = empty ? 0 : hierarchy_.submit(part, now);
            if (error == EAGAIN) return moved;
            if (error != 0) return hierarchy_.fail(error, now), moved;
            if (part.kind == Kind::broadcast) composite.next_offset += part.bytes;
            if (composite.posted == composite.own) {
                composite.held = part.held();
                composite.number = hierarchy_.last_number();
            }
            ++composite.posted;
            if (empty) on_complete(part.cookie, 0, now);
            moved = true;
        }
        if (composite.posted < composite.parts) break;
        ++next_to_post_;
    }
    return moved;
}

// A part has completed successfully.
void Planner::on_complete(std::uint64_t cookie, int, Nanoseconds now) {
    CompositeOperation& composite = composites_[cookie >> 32];
    const auto part = static_cast<std::uint32_t>(cookie);
    ++composite.ended;
    if (part == composite.awaited) composite.awaiting_part = false;
    if (composite.awaiting_slice && part == 0) {
        composite.awaiting_slice = false;
        const reduce::Slice own = slice_for(composite, placement_.self());
        if (composite.request.input == composite.request.buffer && own.bytes > 0)
            std::memcpy(composite.request.buffer + own.offset, composite.scratch.data(), own.bytes);
    }
    if (composite.held && composite.may_begin()) {
        composite.held = false;
        hierarchy_.let_go(composite.number, now);
    }
    if (composite.ended == composite.parts) finish(composite, 0, now);
}

void Planner::finish(CompositeOperation& composite, int error, Nanoseconds now) {
    composite.over = true;
    --open_;
    counters_.operations += error == 0;
    counters_.bytes += error == 0 ? composite.request.bytes : 0;
    while (first_open_ < next_ && at(first_open_).over) ++first_open_;
    owner_.on_complete(composite.request.cookie, error, now);
}

bool Planner::progress(Nanoseconds now) {
    if (error_ != 0) return false;
    bool moved = hierarchy_.progress(now);
    if (hierarchy_.error() == 0) moved |= post_parts(now);
    if (hierarchy_.error() == 0) return moved;
    end_all(now);
    return true;
}

void Planner::fail(int error, Nanoseconds now) {
    if (error_ != 0) return;
    hierarchy_.fail(error, now);
    end_all(now);
}

void Planner::end_all(Nanoseconds now) {
    error_ = hierarchy_.error();
    for (std::uint64_t number = first_open_; number < next_; ++number)
        if (CompositeOperation& composite = at(number); !composite.over) finish(composite, error_, now);
}

}  // namespace mcastcoll::levels
