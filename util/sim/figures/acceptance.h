// The criteria that the protocol is held to, measured in virtual time: a run says the same on every machine.
#pragma once

#include <cstdint>

#include "figure.h"

namespace mcastcoll::sim {

// quick: small groups only; full: up to 65,536 ranks. Prints a line for each criterion; true when all are
// met.
bool run_acceptance(const FigureOptions& options, bool full);

}  // namespace mcastcoll::sim
