// Shared by the simulator's tests: runs a case, and prints how to replay a failed one.
#pragma once

#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "sim/world.h"

namespace mcastcoll::sim {

// Returns a number from the environment, or 0.
inline std::uint64_t number_from(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 0);
}

// Returns the seeds of a test: first to last, or only MCC_SEED when the environment names one. With
// MCC_SEED_STEP=n only every n-th seed, because a simulator with sanitizers is twenty times slower.
inline std::vector<std::uint64_t> seeds(std::uint64_t first, std::uint64_t last) {
    if (const std::uint64_t replay = number_from("MCC_SEED"); replay != 0) return {replay};
    const std::uint64_t step = std::max<std::uint64_t>(1, number_from("MCC_SEED_STEP"));
    std::vector<std::uint64_t> result;
    for (std::uint64_t seed = first; seed <= last; seed += step) result.push_back(seed);
    return result;
}

inline long us(Nanoseconds time) {
    return time.value / 1000;
}

inline std::string replay(const Options& options) {
    return fmt::format("n={} {} faults {}; replay with MCC_SEED={} and --filter", options.group().members,
                       engine::name_of(options.group().repair), to_string(options.faults), options.seed);
}

// Runs a script and fails the test on any error.
inline void expect_success(World& world, const Options& options, std::vector<Step> script) {
    const std::string wrong = world.run(std::move(script));
    cr_assert(wrong.empty(), "%s (%s)", wrong.c_str(), replay(options).c_str());
}

// A world that has run its script.
struct Ran : World {
    Ran(const Options& options, std::vector<Step> script) : World(options) {
        expect_success(*this, options, std::move(script));
    }
};

inline void expect_success(const Options& options, std::vector<Step> script) {
    Ran(options, std::move(script));
}

// Returns all policies; with MCC_QUICK, only the last two.
inline std::span<const engine::Repair> policies() {
    static constexpr engine::Repair kAll[] = {engine::Repair::pull, engine::Repair::push,
                                              engine::Repair::sync, engine::Repair::automatic};
    return std::span(kAll).subspan(std::getenv("MCC_QUICK") != nullptr ? 2 : 0);
}

inline Options options_of(std::uint32_t members, engine::Repair repair, std::uint64_t seed) {
    Options options;
    options.group().members = members;
    options.group().key = GroupKey{0x6d636173740000ULL + seed};
    options.group().epoch = Epoch{1};
    options.group().repair = repair;
    options.group().operation_slots = 64;
    options.group().checkpoint_every = 16;
    options.seed = seed;
    // The network has only a latency, so that a test can state the cost of a loss.
    options.model = {.latency = Nanoseconds::from_us(20),
                     .send_overhead = {},
                     .receive_overhead = {},
                     .gap = {},
                     .ns_per_byte = 0,
                     .socket_buffer = 100'000,
                     .own_copies = true};
    options.time_limit = Nanoseconds::from_ms(60'000);
    return options;
}

}  // namespace mcastcoll::sim
