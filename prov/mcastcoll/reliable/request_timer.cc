#include "reliable/request_timer.h"

#include <algorithm>

namespace mcastcoll::reliable {
namespace {

constexpr Nanoseconds kRequestAgain = Nanoseconds::from_ms(10);
constexpr Nanoseconds kRequestLongest = Nanoseconds::from_ms(20);
constexpr unsigned kMaxRequests = 20;

}  // namespace

RequestTimer::RequestTimer(Nanoseconds now)
    : at_(now + kRequestAgain), pause_(kRequestAgain), left_(kMaxRequests) {}

void RequestTimer::requested(Nanoseconds now) {
    left_ -= left_ > 0 ? 1 : 0;
    pause_ = std::min(pause_ + pause_, kRequestLongest);
    at_ = left_ > 0 ? now + pause_ : kNever;
}

void RequestTimer::resume(Nanoseconds now) {
    if (at_ == kNever) at_ = now + kRequestLongest;
}

}  // namespace mcastcoll::reliable
