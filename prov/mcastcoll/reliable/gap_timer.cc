#include "reliable/gap_timer.h"

#include <algorithm>

namespace mcastcoll::reliable {
namespace {

constexpr Nanoseconds kReportFirst = Nanoseconds::from_us(500);
constexpr Nanoseconds kReportAgain = Nanoseconds::from_ms(2);
constexpr Nanoseconds kReportLongest = Nanoseconds::from_ms(64);

}  // namespace

void GapTimer::watch(bool has_gap, Nanoseconds now) {
    if (!has_gap) {
        at_ = kNever;
    } else if (at_ == kNever) {
        at_ = now + kReportFirst;
        pause_ = kReportAgain;
    }
}

void GapTimer::reported(std::uint64_t first_missing, Nanoseconds now) {
    // After progress the next report comes soon.
    if (first_missing != reported_from_) pause_ = kReportAgain;
    reported_from_ = first_missing;
    at_ = now + pause_;
    pause_ = std::min(pause_ + pause_, kReportLongest);
}

}  // namespace mcastcoll::reliable
