// Backoff: how a member waits. With a core for every member it spins, unless the awaited member was last seen
// on the same core. With more members than cores it yields after every poll, because a spinning member may
// keep the awaited one from running. After a long time it sleeps in the kernel, so that an idle member uses
// no CPU. Makes no system calls: Team spins, yields, sleeps, and reads the clock.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

class Backoff {
  public:
    void use(bool crowded) { crowded_ = crowded; }
    void on_progress() { state_ = State::progressed; }
    // How often to poll one line before doing anything else.
    int looks() const { return crowded_ || shares_core_ ? 1 : 64; }
    // One round of waiting: yield or spin; then, with looks_around, check the core, the caller's other work,
    // and the clock.
    struct Turn {
        bool yields, looks_around;
    };
    Turn next();
    // shared: the awaited member was last seen on this core. Returns true if this member should move to
    // another core: members that yield to each other are never idle long enough for the scheduler to migrate
    // one of them.
    bool on_core(bool shared);
    // The caller's other work has made progress.
    void on_other_progress() { state_ = State::untimed; }
    // How long to sleep now; 0: do not sleep.
    Nanoseconds nap(Nanoseconds now);
    // rung: a member has published; otherwise the sleep timed out, and the next sleep starts at once.
    void on_woken(Nanoseconds now, bool rung);

  private:
    // progressed: there was progress since the last round; untimed: there was no progress, and the start of
    // the idle time is not known yet.
    enum class State : std::uint8_t { progressed, untimed, spinning, long_idle };

    Nanoseconds limit() const;

    State state_ = State::progressed;
    bool crowded_ = true;
    bool shares_core_ = false;
    bool looks_soon_ = false;  // the core was shared when the last operation ended
    std::uint32_t turns_ = 0;
    std::uint32_t shared_looks_ = 0;
    std::uint32_t checks_before_move_ = 64;  // consecutive checks with a shared core before a move
    Nanoseconds quiet_since_, next_sleep_;
};

}  // namespace mcastcoll::host
