// The parsed command line of mcastcoll-sim.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure_groups.h"
#include "scenario.h"

namespace mcastcoll::sim {

struct Command {
    Experiment experiment;
    std::string policy = "pull";
    double loss_percent = 0;
    bool json = false;
    Campaign campaign;                   // without seeds: measure
    std::optional<std::uint32_t> hosts;  // of a whole group
    std::uint32_t per_host = 1;
    std::vector<CollectiveKind> collectives{CollectiveKind::broadcast};
    std::optional<GroupExperiment::Kill> kill;
    std::string figure, out, network;
    std::optional<std::uint32_t> largest;  // of a figure's groups
    bool quick = false, acceptance = false, full = false;
    std::string replay;  // a command line that repeats the run
};

// Returns the exit status if the program must end at once, after --help or after an error message on stderr.
std::optional<int> parse(int argc, char** argv, Command& command);

// Prints the message and returns the exit code for an invalid command line.
int complain(const std::string& what);

}  // namespace mcastcoll::sim
