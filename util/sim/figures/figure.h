// The figures of the papers that mcastcoll builds on, drawn from its own engine: each is a table that a
// function computes, with what is needed to draw it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"

namespace mcastcoll::sim {

// The networks that figures are drawn for: a handful of published or plainly assumed LogGP parameters under a
// name, so that a figure says what it was drawn for.
struct NamedNetwork {
    const char* name;
    const char* where;  // what the numbers stand for
    Model model;
};

std::span<const NamedNetwork> all_networks();

// Null when there is none of that name.
template <typename Named>
const Named* named(std::span<const Named> all, std::string_view name) {
    for (const Named& one : all)
        if (name == one.name) return &one;
    return nullptr;
}

template <typename Named>
std::vector<std::string> names_of(std::span<const Named> all) {
    std::vector<std::string> names;
    for (const Named& one : all) names.emplace_back(one.name);
    return names;
}

struct FigureOptions {
    std::uint64_t seed = 1;
    bool quick = false;              // fewer and smaller points
    std::uint32_t largest = 65'536;  // ranks, of a figure of groups of every size
    const NamedNetwork* network = nullptr;
    std::function<void(const std::string& point)> progress{};

    // Before each point.
    void begin(const std::string& point) const {
        if (progress) progress(point);
    }
};

struct Figure {
    struct Axis {
        std::string label;
        int logarithmic = 0;  // base; 0: linear
    };
    struct Curve {
        std::size_t column = 0;
        std::string title;
        bool points = false;  // marks only
    };
    std::string title;
    Axis x, y;
    std::vector<std::string> columns{};  // the first is the x axis
    std::vector<Curve> curves{};
    std::vector<std::string> remarks{};  // what a reader must know, into the CSV's head
    std::vector<std::vector<double>> rows{};
};

struct NamedFigure {
    const char* name;
    const char* what;
    const char* network;  // unless another is asked for; null: none matters
    std::function<Figure(const FigureOptions& options)> compute;
};

std::span<const NamedFigure> all_figures();

// Two-stage broadcast (two_stage.cc), broadcast channels (channels.cc), multilevel topology-aware collectives
// (sites.cc), whole groups (growth.cc), what losses cost (redundancy.cc).
std::vector<NamedFigure> two_stage_figures();
std::vector<NamedFigure> channel_figures();
std::vector<NamedFigure> site_figures();
std::vector<NamedFigure> growth_figures();
std::vector<NamedFigure> redundancy_figures();

// Writes a table as text, or a picture through gnuplot, depending on how the name ends. Returns a complaint
// or "". An empty name: the table to the standard output.
std::string write_figure(const Figure& figure, const std::string& path);

// One point of a figure: broadcasts of one size by one algorithm in one group.
using Policy = std::optional<engine::Repair>;
inline constexpr Policy kBinomial = std::nullopt;
std::string_view name_of(const Policy& policy);

// Rank 0 is the root, and a few broadcasts are not counted.
Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes = 8);
// Says which point it is. Throws std::runtime_error with what an oracle said.
Measured run_trial(const FigureOptions& options, const Experiment& experiment);

// The criteria that the protocol is held to, measured in virtual time: a run says the same on every machine.
// quick: small groups only; full: up to 65,536 ranks. Prints a line for each criterion; true when all are
// met.
bool run_acceptance(const FigureOptions& options, bool full);

}  // namespace mcastcoll::sim
