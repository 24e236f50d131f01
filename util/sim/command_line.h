// The command line of mcastcoll-sim.
#pragma once

#include <string>

#include "figures/command.h"
#include "measure.h"

namespace mcastcoll::sim {

struct Command {
    Experiment experiment;
    std::string policy = "pull";
    double loss_percent = 0;
    bool json = false;
    std::uint64_t campaign = 0, first = 1;  // seeds; 0: measure
    std::uint32_t jobs = 1;
    FigureCommand figures;
    std::string replay;  // this command again
};

// Returns false when the program is to end with this code: after --help, or after a complaint on stderr.
bool parse(int argc, char** argv, Command& command, int& exit_code);

}  // namespace mcastcoll::sim
