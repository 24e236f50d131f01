#include "measure.h"

#include <fmt/format.h>

#include <bit>

#include "message_tree.h"
#include "world.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kManyRanks = 1024;  // from which on a member's memory counts

std::uint32_t root_of(const Experiment& experiment, std::uint32_t step) {
    return experiment.root.value_or(step % experiment.ranks);
}

std::uint32_t steps_of(const Experiment& experiment) {
    return experiment.warm_up + experiment.operations;
}

std::vector<Step> script_of(const Experiment& experiment) {
    std::vector<Step> script;
    for (std::uint32_t i = 0; i < steps_of(experiment); ++i)
        if (experiment.kind == CollectiveKind::broadcast)
            script.push_back(broadcast(root_of(experiment, i), experiment.bytes));
        else
            script.push_back({.kind = experiment.kind, .bytes = experiment.bytes});
    return script;
}

void take_times(Measured& result, const Experiment& experiment, const Simulation& world,
                std::uint32_t group) {
    for (std::uint32_t step = experiment.warm_up; step < steps_of(experiment); ++step) {
        result.times.push_back(world.times(step, group));
        result.roots.push_back(root_of(experiment, step));
    }
}

Measured measure_binomial(const Experiment& experiment) {
    Measured result;
    MessageTree tree(experiment, experiment.ranks, script_of(experiment), experiment.settle,
                     tree_of(TreeShape::binomial), experiment.arrival);
    result.first_failure = tree.run();
    result.failures = result.first_failure.empty() ? 0 : 1;
    take_times(result, experiment, tree, 0);
    result.traffic = tree.network().traffic();
    result.configuration = "a tree of messages, no engine";
    result.duration = tree.now();
    return result;
}

// Memory per member limits the size of a group: large groups get fewer slots, smaller retransmit buffers and
// windows.
engine::GroupConfig config_for(const Experiment& experiment) {
    engine::GroupConfig config;
    config.members = experiment.ranks;
    config.operation_slots = 64;
    config.checkpoint_every = 16;
    if (experiment.ranks > kManyRanks) {
        config.operation_slots = 8;
        config.retransmit_bytes = config.fragment_bytes;
        config.window = 64;
        config.early_buffers = config.parity_buffers = config.late_copies = 0;
        config.gather_bytes = 64;
        config.pending_operations = 8;
    }
    config.fragment_bytes = experiment.fragment_bytes.value_or(config.fragment_bytes);
    config.window = experiment.window.value_or(config.window);
    config.retransmit_bytes =
        std::max(experiment.retransmit_bytes.value_or(config.retransmit_bytes), config.fragment_bytes);
    config.retransmit_bytes = std::min(config.retransmit_bytes, config.window * config.fragment_bytes);
    config.operation_slots = experiment.slots.value_or(config.operation_slots);
    config.checkpoint_every = std::min(std::max(config.operation_slots / 4, 1U), 32U);
    if (!experiment.checkpoints)
        config.operation_slots = config.checkpoint_every = std::bit_ceil(steps_of(experiment) + 1);
    config.channels = experiment.channels.value_or(std::min(config.channels, config.operation_slots));
    config.repair = experiment.policy.value_or(engine::Repair::pull);
    config.redundancy = experiment.redundancy;
    config.root_sync = experiment.root_sync;
    config.root_delay = experiment.root_delay;
    config.epoch = Epoch{1};
    // Simulated hosts have no other load, so deadlines follow from measured round trips alone.
    config.min_silence = config.min_tail = config.min_gap = config.lossless_silence = Nanoseconds{};
    return config;
}

Options options_for(const Experiment& experiment, const engine::GroupConfig& config) {
    Options options;
    static_cast<Conditions&>(options) = experiment;
    options.setups.resize(experiment.groups);
    for (std::uint32_t group = 0; group < experiment.groups; ++group) {
        EngineSetup& setup = options.setups[group];
        setup.config = config;
        setup.config.key = GroupKey{0x6d63617374000000ULL + group};
        setup.script = script_of(experiment);
    }
    options.separated = !experiment.sustained;
    options.in_flight = 1;
    options.arrival = experiment.arrival;
    options.settle = experiment.settle;
    options.check_invariants = experiment.ranks <= 64;
    options.time_limit = Nanoseconds{INT64_MAX / 2};
    options.progress = experiment.progress;
    return options;
}

std::string describe(const engine::GroupConfig& config) {
    return fmt::format(
        "{} slots, checkpoint every {}, fragments of {} bytes, retransmit buffers of {}, window {}, early {}",
        config.operation_slots, config.checkpoint_every, config.fragment_bytes, config.retransmit_bytes,
        config.window, config.early_buffers);
}

}  // namespace

Measured measure(const Experiment& experiment) {
    if (!experiment.policy) return measure_binomial(experiment);
    const engine::GroupConfig config = config_for(experiment);
    World world(options_for(experiment, config));
    Measured result;
    result.first_failure = world.run();
    result.failures = world.failed_operations() + (result.first_failure.empty() ? 0 : 1);
    for (std::uint32_t group = 0; group < experiment.groups && !experiment.sustained; ++group)
        take_times(result, experiment, world, group);
    result.each = {world.span(experiment.warm_up, steps_of(experiment) - 1).value / experiment.operations};
    result.traffic = world.traffic_of_operations();
    result.counters = world.total();
    result.peak_bytes_per_member = world.peak_bytes_per_member();
    result.configuration = describe(config);
    result.events = world.events();
    result.duration = world.now();
    return result;
}

}  // namespace mcastcoll::sim
