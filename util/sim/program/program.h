// mcastcoll-sim: measures broadcasts in a simulated network, or runs a campaign. In the library, so that
// programs with other engines can be linked.
#pragma once

namespace mcastcoll::sim {

// Returns the exit code: 0, 1 when something failed, 2 for a command line that makes no sense.
int run_program(int argc, char** argv);

}  // namespace mcastcoll::sim
