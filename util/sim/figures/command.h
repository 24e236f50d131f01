// The part of mcastcoll-sim's command line that draws figures and checks the acceptance criteria.
#pragma once

#include <cstdint>
#include <string>

namespace mcastcoll {
class Arguments;
}

namespace mcastcoll::sim {

struct FigureCommand {
    std::string figure, out, network;
    bool quick = false, acceptance = false, full = false;

    bool wanted() const { return !figure.empty() || acceptance; }
};

void add_figure_options(Arguments& arguments, FigureCommand& command);
// Returns the exit code: 2 when a name is none, 1 when a criterion is missed or nothing could be written.
int run_figure_command(const FigureCommand& command, std::uint64_t seed);

}  // namespace mcastcoll::sim
