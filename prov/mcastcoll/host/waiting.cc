// Waiting, and running from post to `done`: what Backoff decides, carried out.
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "host/collectives.h"
#include "host/pause.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

// Sends this thread to another of the cores that it may run on. It may come back at once.
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
    sleep(std::min(longest, nap));
    backoff_.on_woken(monotonic_now());
}

// There are cores enough, but the scheduler may still have put two members on one. Spinning would then last
// until it ends it, milliseconds later.
void Team::notice_core() {
    const auto core = static_cast<std::uint32_t>(::sched_getcpu()) + 1;
    const Rings& rings = context_.rings;
    std::atomic<std::uint32_t>& told = rings.core(self());
    if (told.load(std::memory_order_relaxed) != core) told.store(core, std::memory_order_relaxed);
    const bool shared = awaited() != self() && rings.core(awaited()).load(std::memory_order_relaxed) == core;
    if (!backoff_.on_core(shared)) return;
    ++context_.counters.moves;
    leave_core(static_cast<int>(core) - 1);
}

void Team::sleep(Nanoseconds longest) {
    const std::uint32_t turn = prepare_nap();
    detector_.expect_pause();
    if (!progress()) {
        ++context_.counters.sleeps;
        nap(turn, longest);
    }
    end_nap();
}

int Team::run(Operation& operation, int (*meanwhile)(void*), void* argument) {
    if (formation_.is_over() && window_.empty() && at_once(context_, operation, backoff_.looks())) return 0;
    if (const int code = post(operation); code != 0) return code;
    while (!operation.done)
        if (!progress()) wait_turn(meanwhile, argument, Nanoseconds::from_ms(meanwhile != nullptr ? 1 : 10));
    return operation.error;
}

}  // namespace mcastcoll::host
