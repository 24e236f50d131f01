// Duration of collectives in a given network: separated operations, each timed on every rank, or operations
// back to back.
#pragma once

#include "base/types.h"
#include "experiment.h"
#include "measured.h"

namespace mcastcoll::sim {

Measured measure(const Experiment& experiment);

inline double in_us(Nanoseconds time) {
    return static_cast<double>(time.value) / 1000;
}

}  // namespace mcastcoll::sim
