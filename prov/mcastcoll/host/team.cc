#include "host/team.h"

#include <errno.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "host/collectives.h"
#include "host/process.h"

namespace mcastcoll::host {

Result<std::unique_ptr<Team>> Team::open(const TeamConfig& config) {
    const auto found = Formation::open_segment(config);
    if (!found) return found.error();
    std::unique_ptr<Team> team(new Team(config, found.value()));
    auto arrived = team->formation_.arrive(team->context_.rings);
    if (!arrived) return arrived.error();
    return team;
}

Team::Team(const TeamConfig& config, const Formation::Found& found)
    : formation_(config, found), context_(formation_.header(), found.shape, config.self) {}

Team::~Team() {
    // Waits until no member writes into the buffers any more, which then return to their owner.
    while (!window_.empty() && !is_withdrawn(context_, *window_.front())) ::sched_yield();
    formation_.leave(context_.rings);
}

// Waits for at most a second: a member that was stopped in the middle of a write must not block this process
// forever.
void Team::end_open() {
    constexpr Nanoseconds kLongest = Nanoseconds::from_ms(1000);
    const Nanoseconds begun = monotonic_now();
    while (!window_.empty() && !is_withdrawn(context_, *window_.front()) &&
           monotonic_now() - begun < kLongest)
        ::sched_yield();
    drop_all();
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
    // An element larger than a slot cannot be divided.
    if (reduces && operation.combiner.element_bytes > context_.rings.slot_bytes()) return EMSGSIZE;
    if (failure() != 0) {
        end(operation, failure());
        return 0;
    }
    const bool is_first = window_.empty();
    window_.push(&operation);
    if (is_first) progress();
    return 0;
}

bool Team::progress() {
    if (window_.empty()) return false;
    bool moved = false;
    if (formation_.is_over() || formed()) [[likely]] {
        while (!window_.empty()) {
            const Advance outcome = advance(context_, *window_.front());
            if (outcome == Advance::idle) break;
            moved = true;
            if (outcome == Advance::moved) break;
            end_oldest(0);
        }
    }
    if (moved) {
        detector_.on_progress();
        backoff_.on_progress();
        return true;
    }
    if (failure() != 0) [[unlikely]]
        return end_all();
    return detector_.on_idle() && look_after_awaited();
}

void Team::end_oldest(int error) {
    Operation& operation = *window_.front();
    window_.pop();
    end(operation, error);
}

void Team::end(Operation& operation, int error) {
    ++context_.counters.operations;
    context_.counters.bytes += operation.bytes;
    operation.error = error;
    operation.done = true;
}

bool Team::end_all() {
    if (!is_withdrawn(context_, *window_.front())) return false;
    drop_all();
    return true;
}

void Team::drop_all() {
    context_.cursor = {};
    while (!window_.empty()) end_oldest(failure());
}

// A member that waits directly for a dead member poisons the team, and thereby informs every waiter. The dead
// member may have published the awaited data just before its death, so this function checks once more.
bool Team::look_after_awaited() {
    if (!detector_.is_due(monotonic_now())) return false;
    const Rings& rings = context_.rings;
    const std::uint32_t whom = awaited();
    const Stage stage = rings.record(whom).stage.load(std::memory_order_acquire);
    if (whom == self() || stage < Stage::attached) return false;
    if (stage != Stage::left && rings.is_alive(whom)) return false;
    const Advance outcome = formed() ? advance(context_, *window_.front()) : Advance::idle;
    // Although idle, the operation may wait for another member by now.
    if (outcome == Advance::idle && awaited() == whom) fail(ECONNRESET, whom);
    if (outcome == Advance::idle) return false;
    if (outcome == Advance::finished) end_oldest(0);
    return true;
}

Nanoseconds Team::next_deadline() {
    return window_.empty() ? kNever : detector_.next_deadline(monotonic_now());
}

// Waiting, and running from post to `done`: executes the decisions of Backoff.

namespace {

// Moves this thread to another of its allowed cores. The thread may return at once.
void leave_core(int core) {
    cpu_set_t allowed, others;
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    others = allowed;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return;
    ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace

void Team::wait_turn(int (*meanwhile)(void*), void* argument, Nanoseconds longest) {
    const Backoff::Turn turn = backoff_.next();
    if (turn.yields) {
        ++context_.counters.yields;
        ::sched_yield();
    } else {
        pause();
    }
    if (!turn.looks_around) return;
    if (!context_.bounds.crowded) notice_core();
    if (meanwhile != nullptr && meanwhile(argument) != 0) return backoff_.on_other_progress();
    const Nanoseconds nap = backoff_.nap(monotonic_now());
    if (nap == Nanoseconds{0}) return;
    const bool rung = sleep(std::min(longest, nap));
    backoff_.on_woken(monotonic_now(), rung);
}

// There are enough cores, but the scheduler may have put two members on one. Spinning would then last until
// the scheduler intervenes, milliseconds later.
void Team::notice_core() {
    const auto core = static_cast<std::uint32_t>(::sched_getcpu()) + 1;
    const Rings& rings = context_.rings;
    std::atomic<std::uint32_t>& last = rings.core(self());
    if (last.load(std::memory_order_relaxed) != core) last.store(core, std::memory_order_relaxed);
    const bool shared = awaited() != self() && rings.core(awaited()).load(std::memory_order_relaxed) == core;
    if (backoff_.on_core(shared)) leave_core(static_cast<int>(core) - 1);
}

// Returns false if the sleep timed out.
bool Team::sleep(Nanoseconds longest) {
    const Nap prepared = prepare_nap();
    detector_.expect_pause();
    bool rung = true;
    if (!progress() && awaited() == prepared.awaited) {
        ++context_.counters.sleeps;
        rung = Alarm::sleep(prepared, longest);
    }
    end_nap(prepared);
    return rung;
}

int Team::run(Operation& operation, int (*meanwhile)(void*), void* argument) {
    if (formation_.is_over() && window_.empty() && at_once(context_, operation, backoff_.looks())) return 0;
    if (const int code = post(operation); code != 0) return code;
    while (!operation.done)
        if (!progress()) wait_turn(meanwhile, argument, Nanoseconds::from_ms(meanwhile != nullptr ? 1 : 10));
    return operation.error;
}

}  // namespace mcastcoll::host
