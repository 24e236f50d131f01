#include "trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "message_tree.h"

namespace mcastcoll::sim {
namespace {

using Times = std::vector<Nanoseconds>;

template <typename Pick>
Nanoseconds median_over(const std::vector<Times>& operations, Pick&& pick) {
    Times picked;
    for (const Times& operation : operations) picked.push_back(pick(operation));
    return median_of(std::move(picked));
}

Nanoseconds least_receiver(const Times& operation) {
    return *std::min_element(operation.begin() + 1, operation.end());
}

Nanoseconds most_receiver(const Times& operation) {
    return *std::max_element(operation.begin() + 1, operation.end());
}

[[noreturn]] void fail(const Experiment& experiment, const std::string& wrong) {
    throw std::runtime_error(fmt::format("{} ranks, {} bytes, {}: {}", experiment.ranks, experiment.bytes,
                                         experiment.policy ? engine::name_of(*experiment.policy) : "binomial",
                                         wrong));
}

Outcome run_binomial(const Trial& trial, std::vector<Step> script) {
    const Experiment& experiment = trial.experiment;
    MessageTree tree(experiment.ranks, std::move(script), experiment.model, experiment.faults,
                     experiment.seed, experiment.arrival, experiment.settle);
    if (const std::string wrong = tree.run(); !wrong.empty()) fail(experiment, wrong);
    Outcome outcome;
    for (std::uint32_t i = 0; i < experiment.operations; ++i)
        outcome.times.push_back(tree.times(trial.warm_up + i));
    outcome.traffic = tree.traffic();
    return outcome;
}

engine::GroupConfig config_of(const Trial& trial, std::uint32_t operations) {
    engine::GroupConfig config = config_for(trial.experiment);
    config.key = GroupKey{0x6669677572650000ULL};
    if (!trial.checkpoints) {
        config.operation_slots = std::bit_ceil(operations + 1);
        config.checkpoint_every = config.operation_slots;
    }
    if (trial.channels > 0) config.channels = trial.channels;
    return config;
}

}  // namespace

Nanoseconds median_of(Times values) {
    if (values.empty()) return {};
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

Nanoseconds Outcome::median() const {
    Times all;
    for (const Times& operation : times) all.insert(all.end(), operation.begin() + 1, operation.end());
    return median_of(std::move(all));
}

Nanoseconds Outcome::last() const {
    return median_over(times, [](const Times& one) { return *std::max_element(one.begin(), one.end()); });
}

Nanoseconds Outcome::first() const {
    return median_over(times, least_receiver);
}

double Outcome::spread() const {
    const Nanoseconds apart =
        median_over(times, [](const Times& one) { return most_receiver(one) - least_receiver(one); });
    return static_cast<double>(apart.value) / static_cast<double>(std::max<std::int64_t>(1, median().value));
}

Times Outcome::by_rank() const {
    Times medians;
    for (std::size_t rank = 0; rank < times.front().size(); ++rank)
        medians.push_back(median_over(times, [rank](const Times& one) { return one[rank]; }));
    return medians;
}

Outcome run_trial(const Trial& trial) {
    const Experiment& experiment = trial.experiment;
    const std::uint32_t operations = trial.warm_up + experiment.operations;
    std::vector<Step> script(operations, broadcast(0, experiment.bytes));
    if (!experiment.policy) return run_binomial(trial, std::move(script));

    Options options;
    Plan& plan = options.plans.emplace_back();
    plan.script = std::move(script);
    plan.config = config_of(trial, operations);
    options.model = experiment.model;
    options.faults = experiment.faults;
    options.seed = experiment.seed;
    options.arrival = experiment.arrival;
    options.settle = experiment.settle;
    options.separated = !trial.sustained;
    options.in_flight = 1;
    options.check_invariants = false;
    options.time_limit = Nanoseconds{INT64_MAX / 2};
    World world(std::move(options));
    if (const std::string wrong = world.run(); !wrong.empty()) fail(experiment, wrong);

    Outcome outcome;
    for (std::uint32_t i = 0; i < experiment.operations && !trial.sustained; ++i)
        outcome.times.push_back(world.times(trial.warm_up + i));
    outcome.each = {world.span(trial.warm_up, operations - 1).value / experiment.operations};
    outcome.traffic = world.traffic_of_operations();
    outcome.counters = world.total();
    return outcome;
}

}  // namespace mcastcoll::sim
