// The clock that members wait by.
#pragma once

#include <time.h>

#include "wire/types.h"

namespace mcastcoll::host {

inline Nanoseconds monotonic_now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return {std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

}  // namespace mcastcoll::host
