#include "host/backoff.h"

#include <algorithm>

namespace mcastcoll::host {
namespace {

constexpr std::uint32_t kSpinsPerLook = 64;
constexpr std::uint32_t kYieldsPerLook = 4;
// Time without progress before a member yields although there are enough cores.
constexpr Nanoseconds kSpinTime = Nanoseconds::from_ms(1);
// Time without progress before a member sleeps: with a core for every member, and with more members than
// cores.
constexpr Nanoseconds kRoomyTime = Nanoseconds::from_ms(20);
constexpr Nanoseconds kCrowdedTime = Nanoseconds::from_ms(1);
// A member woken without progress goes back to sleep after this time.
constexpr Nanoseconds kSecondWind = Nanoseconds::from_us(100);
constexpr Nanoseconds kShortestSleep = Nanoseconds::from_us(500);
constexpr Nanoseconds kLongestSleep = Nanoseconds::from_ms(10);
constexpr std::uint32_t kMaxChecks = 1U << 16;

}  // namespace

Backoff::Turn Backoff::next() {
    if (state_ == State::progressed) {
        state_ = State::untimed;
        turns_ = 0;
        looks_soon_ = shares_core_;
        shares_core_ = false;
        next_sleep_ = kShortestSleep;
    }
    ++turns_;
    const bool yields = crowded_ || state_ == State::long_idle || shares_core_;
    const bool looks = turns_ % (yields || looks_soon_ ? kYieldsPerLook : kSpinsPerLook) == 0;
    if (looks) looks_soon_ = false;
    return {yields, looks};
}

bool Backoff::on_core(bool shared) {
    shares_core_ = shared;
    if (!shared) shared_looks_ = 0;
    if (!shared || ++shared_looks_ < checks_before_move_) return false;
    shared_looks_ = 0;
    // Moves become rare if other programs use the other cores.
    checks_before_move_ = std::min(2 * checks_before_move_, kMaxChecks);
    return true;
}

Nanoseconds Backoff::limit() const {
    return crowded_ ? kCrowdedTime : kRoomyTime;
}

Nanoseconds Backoff::nap(Nanoseconds now) {
    if (state_ == State::untimed) quiet_since_ = now;
    const Nanoseconds quiet = now - quiet_since_;
    state_ = quiet > kSpinTime ? State::long_idle : State::spinning;
    return quiet < limit() ? Nanoseconds{} : next_sleep_;
}

void Backoff::on_woken(Nanoseconds now, bool rung) {
    next_sleep_ = std::min(Nanoseconds{2 * next_sleep_.value}, kLongestSleep);
    quiet_since_ = now - limit() + (rung ? kSecondWind : Nanoseconds{});
}

}  // namespace mcastcoll::host
