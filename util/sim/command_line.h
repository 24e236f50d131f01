// The command line of mcastcoll-sim.
#pragma once

#include <optional>
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

// What the program ends with at once, after --help or after a complaint on stderr.
std::optional<int> parse(int argc, char** argv, Command& command);

}  // namespace mcastcoll::sim
