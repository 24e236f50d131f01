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

// Returns the entry with this name; null if there is none.
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

    // Reports a point as progress, before it is computed.
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

std::vector<NamedFigure> two_stage_figures();   // two_stage.cc: the two-stage broadcast
std::vector<NamedFigure> channel_figures();     // channels.cc: broadcast channels
std::vector<NamedFigure> site_figures();        // sites.cc: multilevel topology-aware collectives
std::vector<NamedFigure> growth_figures();      // growth.cc: whole groups of growing size
std::vector<NamedFigure> redundancy_figures();  // redundancy.cc: the cost of losses

// Writes a table as text, or a picture through gnuplot, by the suffix of the path. Returns an error message
// or "". With an empty path, writes the table to standard output.
std::string write_figure(const Figure& figure, const std::string& path);

// The algorithm of a point: a repair policy of the engine, or the binomial tree of messages.
using Policy = std::optional<engine::Repair>;
inline constexpr Policy kBinomial = std::nullopt;
std::string_view name_of(const Policy& policy);

// Describes a point of a figure: `operations` broadcasts of equal size from rank 0 in one group, after a few
// broadcasts for warm-up.
Experiment trial_for(const FigureOptions& options, const Policy& policy, std::uint32_t ranks,
                     std::uint32_t operations, std::uint64_t bytes = 8);
// Reports the point as progress, and measures it. Throws std::runtime_error with the message of an oracle if
// a run was wrong.
Measured run_trial(const FigureOptions& options, const Experiment& experiment);

// Measures the acceptance criteria in virtual time: the result is the same on every machine. quick: small
// groups only; full: up to 65,536 ranks. Prints a line for each criterion; returns true if all are met.
bool run_acceptance(const FigureOptions& options, bool full);

}  // namespace mcastcoll::sim
