// What the simulator's tests share: running a case, and telling how to replay it when it fails.
#pragma once

#include <criterion/criterion.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "simulator.h"

namespace mcastcoll::sim {

// The seeds of a test: first to last, or only MCC_SEED when the environment names one.
inline std::vector<std::uint64_t> seeds(std::uint64_t first, std::uint64_t last) {
    if (const char* replay = std::getenv("MCC_SEED"); replay != nullptr && *replay != '\0')
        return {std::strtoull(replay, nullptr, 0)};
    std::vector<std::uint64_t> result;
    for (std::uint64_t seed = first; seed <= last; ++seed) result.push_back(seed);
    return result;
}

inline std::string describe(const Options& options) {
    const Faults& faults = options.faults;
    return fmt::format("n={} {} loss={} duplicate={} corrupt={} jitter={}us spike={} backpressure={}",
                       options.group.members, options.group.repair == engine::Repair::pull ? "pull" : "push",
                       faults.loss, faults.duplicate, faults.corrupt, faults.jitter.value / 1000,
                       faults.spike, faults.backpressure);
}

inline std::string replay(const Options& options) {
    return fmt::format("{}; replay with MCC_SEED={} and --filter", describe(options), options.seed);
}

// Runs a script and fails the test when anything is wrong.
inline void expect_success(World& world, const Options& options, const std::vector<Step>& script) {
    const std::string wrong = world.run(script);
    cr_assert(wrong.empty(), "%s (%s)", wrong.c_str(), replay(options).c_str());
}

inline void expect_success(const Options& options, const std::vector<Step>& script) {
    World world(options);
    expect_success(world, options, script);
}

inline constexpr engine::Repair kPolicies[] = {engine::Repair::pull, engine::Repair::push};

inline Options options_of(std::uint32_t members, engine::Repair repair, std::uint64_t seed) {
    Options options;
    options.group.members = members;
    options.group.key = GroupKey{0x6d636173740000ULL + seed};
    options.group.epoch = Epoch{1};
    options.group.repair = repair;
    options.group.operation_slots = 64;
    options.group.checkpoint_every = 16;
    options.seed = seed;
    options.time_limit = Nanoseconds::from_ms(60'000);
    return options;
}

inline Step broadcast(std::uint32_t root, std::uint64_t bytes) {
    return {engine::OperationKind::broadcast, rank_of(root), bytes};
}
inline Step barrier() {
    return {engine::OperationKind::barrier, rank_of(0), 0};
}

}  // namespace mcastcoll::sim
