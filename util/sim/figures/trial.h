// One point of a figure: broadcasts of one size by one algorithm in one group, and the statistics that the
// papers report of such a thing.
#pragma once

#include <vector>

#include "measure.h"

namespace mcastcoll::sim {

struct Trial {
    Experiment experiment;      // rank 0 is the root, whatever it says
    std::uint32_t warm_up = 8;  // operations before the counted ones, in which engines measure round trips
    // Back to back: each rank enters the next broadcast as soon as it is through with the one before.
    bool sustained = false;
    bool checkpoints = true;     // no: nobody ever agrees on what everybody has, as if nothing were repaired
    std::uint32_t channels = 0;  // of the sync policy; 0: the engine's default
};

class Outcome {
  public:
    // By operation and rank, from the common start to the rank's completion.
    std::vector<std::vector<Nanoseconds>> times;
    Nanoseconds each{};  // of a sustained trial: the whole time over the number of operations
    Network::Traffic traffic;
    engine::Counters counters;

    // The root is through as soon as it has sent, so all but last() leave it out.
    Nanoseconds median() const;                // over the receivers of all operations
    Nanoseconds last() const;                  // the last rank of each operation; median over operations
    Nanoseconds first() const;                 // the first receiver of each; likewise
    double spread() const;                     // last less first receiver, likewise; over the median
    std::vector<Nanoseconds> by_rank() const;  // median over operations
};

// Throws std::runtime_error with what an oracle said.
Outcome run_trial(const Trial& trial);

Nanoseconds median_of(std::vector<Nanoseconds> values);
inline double in_us(Nanoseconds time) {
    return static_cast<double>(time.value) / 1000;
}

}  // namespace mcastcoll::sim
