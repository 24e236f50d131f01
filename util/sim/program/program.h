// mcastcoll-sim: measures broadcasts in a simulated network, or runs a campaign. Part of the library, so that
// programs with modified engines can be linked.
#pragma once

namespace mcastcoll::sim {

// Returns the exit code: 0, 1 after a failure, 2 for an invalid command line.
int run_program(int argc, char** argv);

}  // namespace mcastcoll::sim
