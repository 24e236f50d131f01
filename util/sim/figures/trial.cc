#include "trial.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mcastcoll::sim {

std::string_view name_of(const Policy& policy) {
    return policy ? engine::name_of(*policy) : "binomial";
}

Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes) {
    Experiment experiment;
    experiment.policy = policy;
    experiment.ranks = ranks;
    experiment.operations = operations;
    experiment.bytes = bytes;
    experiment.root = 0;
    experiment.warm_up = 8;
    experiment.seed = options.seed;
    if (options.network != nullptr) experiment.model = options.network->model();
    return experiment;
}

Measured run_trial(const FigureOptions& options, const std::string& point, const Experiment& experiment) {
    if (options.progress) options.progress(point);
    Measured measured = measure(experiment);
    if (measured.failures > 0)
        throw std::runtime_error(fmt::format("{} ranks, {} bytes, {}: {}", experiment.ranks, experiment.bytes,
                                             name_of(experiment.policy), measured.trouble));
    return measured;
}

}  // namespace mcastcoll::sim
