// The monotonic clock. Pure code (README.md) does not read a clock: times are passed to it as arguments.
#pragma once

#include <time.h>

#include "base/types.h"

namespace mcastcoll {

inline Nanoseconds monotonic_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace mcastcoll
