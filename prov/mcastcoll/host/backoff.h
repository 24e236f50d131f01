// Backoff: how a member waits. With a core for every member it spins, unless the one that it waits for was
// last seen on its core. With more members than cores whoever spins keeps another from what it waits for:
// look a few times, since that one may run on another core, then yield. Nothing for long: sleep in the
// kernel, so that an idle member burns nothing. Pure: Team spins, yields, sleeps, and reads the clock.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace mcastcoll::host {

class Backoff {
  public:
    void use(bool crowded) { crowded_ = crowded; }
    void on_progress() { state_ = State::progressed; }
    // How often to look at one line before anything else is done.
    int looks() const { return crowded_ || shares_core_ ? 1 : 64; }
    // One turn of waiting: spin or yield, then perhaps look around: at the core, the caller's other work, and
    // the clock.
    struct Turn {
        bool yields, looks_around;
    };
    Turn next();
    // Whether the awaited member was last seen on this core. True when this one should go to another: those
    // who yield to each other stay where they are, since they are never out of work for long enough to be
    // worth a migration.
    bool on_core(bool shared);
    // The caller's other work has moved.
    void on_other_progress() { state_ = State::untimed; }
    // For how long to sleep now; 0 is not at all.
    Nanoseconds nap(Nanoseconds now);
    void on_woken(Nanoseconds now);

  private:
    // progressed: something has come since the last turn; untimed: nothing has, since nobody knows when.
    enum class State : std::uint8_t { progressed, untimed, spinning, long_idle };

    Nanoseconds limit() const;

    State state_ = State::progressed;
    bool crowded_ = true;
    bool shares_core_ = false;
    bool looks_soon_ = false;  // it shared its core when the last operation ended
    std::uint32_t turns_ = 0;
    std::uint32_t shared_looks_ = 0;
    std::uint32_t patience_ = 64;  // looks in a row that find the core shared
    Nanoseconds quiet_since_, next_sleep_;
};

}  // namespace mcastcoll::host
