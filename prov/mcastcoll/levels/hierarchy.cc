#include "levels/hierarchy.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {

Hierarchy::Hierarchy(const Placement& placement, std::array<Level*, kLevels> levels, std::size_t max_open,
                     Owner& owner)
    : placement_(placement), levels_(levels), owner_(owner), operations_(max_open) {}

bool Hierarchy::supports(Kind kind) const {
    return !moves_blocks(kind) || placement_.hosts() == 1 || levels_[kExchange] != nullptr;
}

int Hierarchy::submit(const Request& request, Nanoseconds now) {
    if (error_ != 0) return error_;
    if (!supports(request.kind)) return ENOSYS;
    if (next_ - first_open_ == operations_.size()) return EAGAIN;
    if (next_ == first_open_) base_ = next_;  // reuses memory that is in the cache
    Operation& operation = at(next_);
    operation.request = request;
    operation.over = false;
    operation.wanted = {};
    operation.posted = {};
    operation.source = -1;
    operation.result = request.buffer;
    if (request.kind == Kind::broadcast)
        set_up_broadcast(operation);
    else
        set_up_reduction(operation);
    ++next_;
    if (request.kind == Kind::broadcast) relay(operation, now);
    post_level_operations(now);
    return 0;
}

void Hierarchy::let_go(std::uint64_t number, Nanoseconds now) {
    if (number < first_open_ || number >= next_) return;
    Operation& operation = at(number);
    if (operation.over || !operation.request.held()) return;
    operation.request.ready = UINT64_MAX;
    relay(operation, now);
}

LevelOperation& Hierarchy::want(Operation& operation, std::size_t level, std::uint32_t root) {
    operation.wanted[level] = true;
    LevelOperation& level_operation = operation.level_operations[level];
    level_operation = LevelOperation{operation.request};
    level_operation.number = next_;
    level_operation.root = rank_of(root);
    level_operation.buffer = operation.result;
    if (level_operation.kind == Kind::broadcast) level_operation.ready = 0;
    return level_operation;
}

void Hierarchy::set_up_broadcast(Operation& operation) {
    const std::uint32_t root = index_of(operation.request.root), self = placement_.self();
    const std::uint32_t host_root = placement_.host_root(root), segment_root = placement_.segment_root(root);
    if (placement_.host().size() > 1) want(operation, kHost, host_root);
    if (placement_.leads_host() && placement_.segment().size() > 1) want(operation, kSegment, segment_root);
    const bool abroad = placement_.segment_of(root) != placement_.segment_of(self);
    if (placement_.segments().size() > 1 && (self == root || (placement_.leads_segment() && abroad)))
        want(operation, kSite, root);

    if (self == root) return;
    if (operation.wanted[kSite])
        operation.source = kSite;
    else if (operation.wanted[kSegment] && segment_root != placement_.segment_self())
        operation.source = kSegment;
    else
        operation.source = kHost;
}

void Hierarchy::set_up_reduction(Operation& operation) {
    const Request& request = operation.request;
    const bool to_root = request.kind == Kind::reduce;
    const std::uint32_t root = index_of(request.root);
    const bool is_root = root == placement_.self();
    if (placement_.hosts() == 1) {
        if (placement_.host().size() > 1) {
            want(operation, kHost, root);
        } else if (request.bytes > 0 && request.input != nullptr && request.buffer != nullptr &&
                   request.input != request.buffer) {
            std::memcpy(request.buffer, request.input, request.bytes);
        }
        return;
    }
    if (moves_blocks(request.kind)) {
        want(operation, kExchange, root);
        return;
    }
    if (to_root && !is_root && placement_.leads_host()) {
        if (operation.scratch.size() < request.bytes) operation.scratch.resize(request.bytes);
        operation.result = operation.scratch.data();
    }
    // The contribution to an outer level is the result of the inner one.
    const auto inward = [&](std::size_t level) {
        LevelOperation& level_operation = want(operation, level, 0);
        for (std::size_t inner = 0; inner < level; ++inner)
            if (operation.wanted[inner]) level_operation.input = operation.result;
        return &level_operation;
    };
    if (placement_.host().size() > 1) inward(kHost)->hold = !to_root;
    const bool several_segments = placement_.segments().size() > 1;
    if (placement_.leads_host() && placement_.segment().size() > 1)
        inward(kSegment)->hold = !to_root && several_segments;
    if (!to_root) {
        if (several_segments && placement_.leads_segment()) inward(kSite);
    } else if (several_segments || placement_.segments().front() != root) {
        if (placement_.leads_segment() || is_root) inward(kSite)->root = request.root;
    }
}

// Whether the contributions of all inner levels are combined here.
bool Hierarchy::gathered_below(const Operation& operation, std::size_t level) const {
    // A reduce root that leads no segment receives the result into a buffer which inner levels may still read
    // as a contribution, so the root waits for these levels.
    const bool wait_for_end = level == kSite && !placement_.leads_segment();
    for (std::size_t inner = 0; inner < level; ++inner) {
        if (!operation.wanted[inner]) continue;
        const LevelOperation& level_operation = operation.level_operations[inner];
        if (!level_operation.done && (wait_for_end || !level_operation.gathered)) return false;
    }
    return true;
}

// Posts in the order of operations on each level, because members distinguish level operations by counting.
bool Hierarchy::post_level_operations(Nanoseconds now) {
    bool moved = false;
    for (std::size_t level = 0; level < kLevels; ++level) {
        std::uint64_t& number = next_to_post_[level];
        for (number = std::max(number, first_open_); number < next_; ++number) {
            Operation& operation = at(number);
            if (!operation.wanted[level] || operation.over) continue;
            if (operation.request.kind != Kind::broadcast && !gathered_below(operation, level)) break;
            const int error = levels_[level]->post(operation.level_operations[level], now);
            if (error == EAGAIN) break;
            if (error != 0) return fail(error, now), true;
            operation.posted[level] = moved = true;
        }
    }
    return moved;
}

// Forwards a broadcast's data from the level on which the data arrives to the other levels.
bool Hierarchy::relay(Operation& operation, Nanoseconds now) {
    std::size_t here = std::min(operation.request.ready, operation.request.bytes);
    if (operation.source >= 0) {
        const LevelOperation& source = operation.level_operations[static_cast<std::size_t>(operation.source)];
        if (!source.done) here = source.arrived;
    }
    bool moved = false;
    for (std::size_t level = 0; level < kLevels; ++level) {
        LevelOperation& level_operation = operation.level_operations[level];
        if (!operation.wanted[level] || static_cast<int>(level) == operation.source ||
            level_operation.ready >= here)
            continue;
        level_operation.ready = here;
        moved = true;
        if (operation.posted[level] && !level_operation.done) levels_[level]->advance(level_operation, now);
    }
    return moved;
}

// Releases results of the outer levels to the inner ones.
bool Hierarchy::release(Operation& operation, Nanoseconds now) {
    bool moved = false, outer_done = true;
    for (std::size_t level = kLevels; level-- > 0;) {
        LevelOperation& level_operation = operation.level_operations[level];
        if (!operation.wanted[level]) continue;
        if (outer_done && level_operation.hold && level_operation.gathered && !level_operation.released) {
            level_operation.released = moved = true;
            levels_[level]->advance(level_operation, now);
        }
        outer_done = outer_done && level_operation.done;
    }
    return moved;
}

bool Hierarchy::step(Operation& operation, Nanoseconds now) {
    const bool moved =
        operation.request.kind == Kind::broadcast ? relay(operation, now) : release(operation, now);
    bool all_done = !operation.request.held();
    for (std::size_t level = 0; level < kLevels; ++level) {
        if (!operation.wanted[level]) continue;
        const LevelOperation& level_operation = operation.level_operations[level];
        if (level_operation.done && level_operation.error != 0) {
            fail(level_operation.error, now);
            return true;
        }
        all_done = all_done && level_operation.done;
    }
    if (!all_done) return moved;
    operation.over = true;
    while (first_open_ < next_ && at(first_open_).over) ++first_open_;
    owner_.on_complete(operation.request.cookie, 0, now);
    return true;
}

bool Hierarchy::progress(Nanoseconds now) {
    if (error_ != 0) return false;
    bool moved = false;
    for (Level* level : levels_)
        if (level != nullptr) moved |= level->progress(now);
    moved |= post_level_operations(now);
    for (std::uint64_t number = first_open_; number < next_ && error_ == 0; ++number)
        if (Operation& operation = at(number); !operation.over) moved |= step(operation, now);
    for (const Level* level : levels_)
        if (level != nullptr && level->own_failure() != 0) fail(level->own_failure(), now);
    return moved;
}

Nanoseconds Hierarchy::next_deadline() const {
    Nanoseconds next = kNever;
    for (const Level* level : levels_)
        if (level != nullptr) next = std::min(next, level->next_deadline());
    return next;
}

void Hierarchy::fail(int error, Nanoseconds now) {
    if (error_ != 0) return;
    error_ = error;
    for (Level* level : levels_)
        if (level != nullptr) level->fail(error, now);
    for (; first_open_ < next_; ++first_open_) at(first_open_).over = true;
}

}  // namespace mcastcoll::levels
