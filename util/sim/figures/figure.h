// The figures of the papers behind mcastcoll, computed with its own engine: each figure is a table computed
// by a function, with the data needed to draw it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"

namespace mcastcoll::sim {

// The networks of the figures: LogGP parameters, published or assumed, under a name that each figure states.
struct NamedNetwork {
    const char* name;
    const char* where;  // meaning and origin of the numbers
    Model model;
};

std::span<const NamedNetwork> all_networks();

// Null if no entry has the name.
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
    std::uint32_t largest = 65'536;  // ranks, in figures over group sizes
    const NamedNetwork* network = nullptr;
    std::function<void(const std::string& point)> progress{};

    // Called before each point.
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
    std::vector<std::string> remarks{};  // notes for the reader, in the CSV's head
    std::vector<std::vector<double>> rows{};
};

struct NamedFigure {
    const char* name;
    const char* what;
    const char* network;  // default network; null: the figure depends on no network
    std::function<Figure(const FigureOptions& options)> compute;
};

std::span<const NamedFigure> all_figures();

// Two-stage broadcast (two_stage.cc), broadcast channels (channels.cc), multilevel topology-aware collectives
// (sites.cc), whole groups (growth.cc), the cost of losses (redundancy.cc).
std::vector<NamedFigure> two_stage_figures();
std::vector<NamedFigure> channel_figures();
std::vector<NamedFigure> site_figures();
std::vector<NamedFigure> growth_figures();
std::vector<NamedFigure> redundancy_figures();

// Writes a table as text, or a picture through gnuplot, by the suffix of the path. Returns an error message
// or "". With an empty path, writes the table to standard output.
std::string write_figure(const Figure& figure, const std::string& path);

// A point of a figure: broadcasts of equal size, with one algorithm, in one group.
using Policy = std::optional<engine::Repair>;
inline constexpr Policy kBinomial = std::nullopt;
std::string_view name_of(const Policy& policy);

// Rank 0 is the root; a few broadcasts are warm-up.
Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes = 8);
// Reports the point as progress. Throws std::runtime_error with the message of an oracle.
Measured run_trial(const FigureOptions& options, const Experiment& experiment);

// Measures the acceptance criteria in virtual time: the result is the same on every machine. quick: small
// groups only; full: up to 65,536 ranks. Prints a line for each criterion; returns true if all are met.
bool run_acceptance(const FigureOptions& options, bool full);

}  // namespace mcastcoll::sim
