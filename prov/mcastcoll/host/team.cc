#include "host/team.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "host/collectives.h"

namespace mcastcoll::host {

Result<std::unique_ptr<Team>> Team::create(const TeamConfig& config) {
    return make(config, Formation::make_segment(config));
}

Result<std::unique_ptr<Team>> Team::attach(const TeamConfig& config) {
    return make(config, Formation::find_segment(config));
}

Result<std::unique_ptr<Team>> Team::make(const TeamConfig& config, Result<std::shared_ptr<Segment>> segment) {
    if (!segment) return segment.error();
    std::unique_ptr<Team> team(new Team(config, std::move(segment).value()));
    auto arrived = team->formation_.arrive(team->context_.rings);
    if (!arrived) return arrived.error();
    return team;
}

Team::Team(const TeamConfig& config, std::shared_ptr<Segment> segment)
    : formation_(config, std::move(segment)), context_(formation_.header(), config.self) {}

Team::~Team() {
    // Nobody writes into a buffer that its owner has back.
    while (!window_.empty() && !is_withdrawn(context_, window_.oldest())) ::sched_yield();
    formation_.leave(context_.rings);
}

bool Team::formed() {
    if (formation_.is_over()) return true;
    if (!formation_.advance(context_)) return false;
    backoff_.use(context_.bounds.crowded);
    return true;
}

int Team::post(Operation& operation) {
    if (is_rooted(operation.kind) && operation.root >= size()) return EINVAL;
    const bool reduces = is_reduction(operation.kind) && operation.bytes > 0;
    if (reduces && !is_whole(operation)) return EINVAL;
    if (window_.full()) return EAGAIN;
    operation.done = false;
    operation.error = 0;
    operation.arrived = 0;
    // An element that is larger than a slot cannot be cut.
    if (reduces && operation.combiner.element_bytes > context_.rings.slot_bytes()) return EMSGSIZE;
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
    if (formation_.is_over() || formed()) [[likely]] {
        while (!window_.empty()) {
            const Advance outcome = advance(context_, window_.oldest());
            if (outcome == Advance::idle) break;
            moved = true;
            if (outcome == Advance::moved) break;
            end(window_.take(), 0);
        }
    }
    if (moved) {
        detector_.on_progress();
        backoff_.on_progress();
        return true;
    }
    if (failure() != 0) [[unlikely]]
        return end_all();
    if (detector_.on_idle()) look_after_awaited();
    return false;
}

void Team::end(Operation& operation, int error) {
    ++context_.counters.operations;
    if (error != 0) ++context_.counters.failed_operations;
    operation.error = error;
    operation.done = true;
}

bool Team::end_all() {
    const int error = failure();
    if (!is_withdrawn(context_, window_.oldest())) return false;
    context_.cursor = {};
    while (!window_.empty()) end(window_.take(), error);
    return true;
}

// Whoever waits directly for a member that is gone poisons the team; those who wait for somebody else hear of
// it.
void Team::look_after_awaited() {
    if (!detector_.is_due(monotonic_now())) return;
    ++context_.counters.liveness_checks;
    const Rings& rings = context_.rings;
    const Stage stage = rings.card(awaited()).stage.load(std::memory_order_acquire);
    if (awaited() == self() || stage < Stage::attached) return;
    if (stage == Stage::left || !rings.is_alive(awaited())) fail(ECONNRESET, awaited());
}

Nanoseconds Team::next_deadline() {
    return window_.empty() ? kNever : detector_.next_deadline(monotonic_now());
}

}  // namespace mcastcoll::host
