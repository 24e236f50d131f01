// The figures of the papers that mcastcoll builds on, drawn from its own engine: each is a table that a
// function computes, with what is needed to draw it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "networks.h"

namespace mcastcoll::sim {

struct FigureOptions {
    std::uint64_t seed = 1;
    bool quick = false;  // fewer and smaller points
    const NamedNetwork* network = nullptr;
    std::function<void(const std::string& point)> progress;  // called before each point
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
    std::vector<std::string> columns;  // the first is the x axis
    std::vector<std::vector<double>> rows;
    std::vector<Curve> curves;
    std::vector<std::string> remarks;  // what a reader must know, into the CSV's head
};

struct NamedFigure {
    const char* name;
    const char* what;
    const char* network;  // unless another is asked for; null: none matters
    Figure (*compute)(const FigureOptions& options);
};

std::span<const NamedFigure> all_figures();
inline const NamedFigure* figure_named(std::string_view name) {
    return named(all_figures(), name);
}

// Two-stage broadcast (two_stage.cc, odds.cc) and broadcast channels (channels.cc).
Figure figure_size(const FigureOptions& options);
Figure figure_ranks(const FigureOptions& options);
Figure figure_first_last(const FigureOptions& options);
Figure figure_penalty(const FigureOptions& options);
Figure figure_crc(const FigureOptions& options);
Figure figure_collisions(const FigureOptions& options);
Figure figure_channels_latency(const FigureOptions& options);
Figure figure_channels_cost(const FigureOptions& options);
Figure figure_channels_count(const FigureOptions& options);
// Multilevel topology-aware collectives (sites.cc).
Figure figure_karonis_wan(const FigureOptions& options);
Figure figure_karonis_lan(const FigureOptions& options);
Figure figure_karonis_both(const FigureOptions& options);
Figure figure_karonis_clusters(const FigureOptions& options);

// Writes a table as text, or a picture through gnuplot, depending on how the name ends. Returns a complaint
// or "". An empty name: the table to the standard output.
std::string write_figure(const Figure& figure, const std::string& path);

}  // namespace mcastcoll::sim
