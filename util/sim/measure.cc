#include "measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "message_tree.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kManyRanks = 1024;  // from which on a member's memory counts

Nanoseconds quantile(std::vector<Nanoseconds>& times, double share) {
    if (times.empty()) return {};
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(times.size() - 1) + 0.5);
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(times.begin(), at, times.end());
    return *at;
}

std::uint32_t root_of(const Experiment& experiment, std::uint32_t step) {
    return experiment.root.value_or(step % experiment.ranks);
}

std::vector<Step> script_of(const Experiment& experiment) {
    std::vector<Step> script;
    for (std::uint32_t i = 0; i < experiment.operations; ++i)
        script.push_back(broadcast(root_of(experiment, i), experiment.bytes));
    return script;
}

// Gathers the times of operations, one at a time.
class Statistics {
  public:
    // The root is through as soon as it has sent, which says nothing about the spread.
    void add(std::vector<Nanoseconds> times, std::uint32_t root) {
        if (times.size() < 2) return;
        if (root < times.size()) std::swap(times[root], times.back());
        const auto [first, last] = std::minmax_element(times.begin(), times.end() - 1);
        const Nanoseconds least = *first, most = std::max(*last, times.back());
        last_.push_back(most);
        all_.insert(all_.end(), times.begin(), times.end());
        const Nanoseconds median = quantile(times, 0.5);
        if (median.value > 0)
            spreads_.push_back(static_cast<double>((most - least).value) / static_cast<double>(median.value));
    }
    void write(Measured& result) {
        result.median = quantile(all_, 0.5);
        result.p99 = quantile(all_, 0.99);
        result.last_median = quantile(last_, 0.5);
        if (spreads_.empty()) return;
        const auto middle = spreads_.begin() + static_cast<std::ptrdiff_t>(spreads_.size() / 2);
        std::nth_element(spreads_.begin(), middle, spreads_.end());
        result.spread = *middle;
    }

  private:
    std::vector<Nanoseconds> all_, last_;
    std::vector<double> spreads_;
};

void count_traffic(Measured& result, const Network::Traffic& traffic, std::uint64_t operations) {
    const auto count = static_cast<double>(std::max<std::uint64_t>(operations, 1));
    result.messages_per_operation = static_cast<double>(traffic.messages) / count;
    result.datagrams_per_operation = static_cast<double>(traffic.datagrams) / count;
}

Measured measure_binomial(const Experiment& experiment) {
    Measured result;
    MessageTree tree(experiment.ranks, script_of(experiment), experiment.model, experiment.faults,
                     experiment.seed, experiment.arrival, experiment.settle);
    result.trouble = tree.run();
    result.failures = result.trouble.empty() ? 0 : 1;
    Statistics statistics;
    for (std::uint32_t step = 0; step < experiment.operations; ++step)
        statistics.add(tree.times(step), root_of(experiment, step));
    statistics.write(result);
    count_traffic(result, tree.traffic(), experiment.operations);
    result.configuration = "a tree of messages, no engine";
    result.duration = tree.now();
    return result;
}

}  // namespace

engine::GroupConfig config_for(const Experiment& experiment) {
    engine::GroupConfig config;
    config.members = experiment.ranks;
    config.operation_slots = 64;
    config.checkpoint_every = 16;
    if (experiment.ranks > kManyRanks) {
        config.operation_slots = 8;
        config.retransmit_bytes = config.fragment_bytes;
        config.window = 64;
        config.early_buffers = 0;
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
    config.channels = std::min(config.channels, config.operation_slots);
    config.repair = experiment.policy.value_or(engine::Repair::pull);
    config.root_sync = experiment.root_sync;
    config.root_delay = experiment.root_delay;
    config.epoch = Epoch{1};
    // These hosts are never busy with anything else, so deadlines follow from measured round trips alone.
    config.least_silence = config.least_tail = config.least_gap = Nanoseconds{};
    return config;
}

std::string describe(const engine::GroupConfig& config) {
    return fmt::format(
        "{} slots, checkpoint every {}, fragments of {} bytes, retransmit buffers of {}, window {}, early {}",
        config.operation_slots, config.checkpoint_every, config.fragment_bytes, config.retransmit_bytes,
        config.window, config.early_buffers);
}

Measured measure(const Experiment& experiment) {
    Measured result;
    if (!experiment.policy) {
        result = measure_binomial(experiment);
    } else {
        Options options;
        const engine::GroupConfig config = config_for(experiment);
        for (std::uint32_t group = 0; group < experiment.groups; ++group) {
            Plan& plan = options.plans.emplace_back();
            plan.config = config;
            plan.config.key = GroupKey{0x6d63617374000000ULL + group};
            plan.script = script_of(experiment);
        }
        options.model = experiment.model;
        options.faults = experiment.faults;
        options.seed = experiment.seed;
        options.separated = true;
        options.arrival = experiment.arrival;
        options.settle = experiment.settle;
        options.check_invariants = experiment.ranks <= 64;
        options.time_limit = Nanoseconds{INT64_MAX / 2};
        options.progress = experiment.progress;
        World world(std::move(options));
        result.trouble = world.run();
        result.failures = world.failed_operations() + (result.trouble.empty() ? 0 : 1);
        Statistics statistics;
        for (std::uint32_t group = 0; group < experiment.groups; ++group)
            for (std::uint32_t step = 0; step < experiment.operations; ++step)
                statistics.add(world.times(step, group), root_of(experiment, step));
        statistics.write(result);
        count_traffic(result, world.traffic_of_operations(),
                      std::uint64_t{experiment.operations} * experiment.groups);
        result.peak_bytes_per_member = world.peak_bytes_per_member();
        result.configuration = describe(config);
        result.events = world.events();
        result.duration = world.now();
    }
    result.round_trip = experiment.model.round_trip(wire::kHeaderBytes);
    return result;
}

}  // namespace mcastcoll::sim
