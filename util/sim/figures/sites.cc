// The three figures of Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting Hierarchy in
// Parallel Computer Networks to Optimize Collective Operation Performance" (IPDPS 2000): broadcasts over a
// wide area, over a local one, and over both, by a tree without topology information, by trees with two
// levels, by a tree with all levels, and by our protocol. Every rank is the root once. The traffic on the
// slow links is counted, not derived.
#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "figure.h"
#include "group_world.h"
#include "message_tree.h"

namespace mcastcoll::sim {
namespace {

struct Places {
    std::vector<std::uint32_t> machines;  // of each site
    std::uint32_t ranks_per_machine;

    Layout layout() const {
        std::vector<std::vector<std::uint32_t>> sites;
        for (const std::uint32_t here : machines) sites.emplace_back(here, ranks_per_machine);
        return Layout::of(sites);
    }
    std::uint32_t ranks() const { return static_cast<std::uint32_t>(layout().machine_of.size()); }
};

// Cost of a broadcast, the mean over all roots: microseconds until the last rank has it; how often its bytes
// crossed links between sites, over all links and directions; and how often its bytes entered the machine
// that received most.
using Cost = std::array<double, 3>;

// Reads the network's counters after each broadcast; the first few are warm-up.
Cost cost_of(Simulation& world, const char* name, std::uint32_t warm_up, std::uint32_t ranks,
             std::uint64_t bytes) {
    Cost sum{};
    TrafficByLink before;
    world.step_over = [&](std::size_t done) {
        const TrafficByLink now = world.network().link_traffic();
        if (done > warm_up) {
            const TrafficByLink step = now - before;
            std::uint64_t wan = 0, port = 0;
            for (const LinkTraffic& link : step.links) wan += link.payload_bytes;
            for (const LinkTraffic& into : step.into) port = std::max(port, into.payload_bytes);
            sum[1] += static_cast<double>(wan) / static_cast<double>(bytes);
            sum[2] += static_cast<double>(port) / static_cast<double>(bytes);
        }
        before = now;
    };
    if (const std::string wrong = world.run(); !wrong.empty())
        throw std::runtime_error(fmt::format("{}, {} bytes: {}", name, bytes, wrong));
    for (std::uint32_t root = 0; root < ranks; ++root)
        sum[0] += in_us(std::ranges::max(world.times(warm_up + root)));
    for (double& one : sum) one /= ranks;
    return sum;
}

Model model_for(const FigureOptions& options, const Places& places) {
    Model model = options.network->model;
    model.layout = places.layout();
    return model;
}

constexpr Nanoseconds kSettle = Nanoseconds::from_us(200);

// The roots of all broadcasts, so that the counted ones begin with rank 0.
std::vector<std::uint32_t> every_root(const Places& places, std::uint32_t warm_up) {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t i = 0; i < warm_up + places.ranks(); ++i)
        roots.push_back((i + places.ranks() - warm_up % places.ranks()) % places.ranks());
    return roots;
}

Cost cost_of_tree(const FigureOptions& options, const Places& places, TreeShape shape, std::uint64_t bytes) {
    const Model model = model_for(options, places);
    std::vector<Step> script;
    for (const std::uint32_t root : every_root(places, 0)) script.push_back(broadcast(root, bytes));
    MessageTree tree({.model = model, .seed = options.seed}, places.ranks(), std::move(script), kSettle,
                     tree_of(shape, model.layout));
    return cost_of(tree, name_of(shape).data(), 0, places.ranks(), bytes);
}

// Engines measure round trips in the first broadcasts, which are not counted.
Cost cost_of_ours(const FigureOptions& options, const Places& places, std::uint64_t bytes) {
    const std::uint32_t warm_up = 8;
    GroupOptions whole = one_group(model_for(options, places));
    whole.seed = options.seed;
    whole.groups[0].settle = kSettle;
    for (const std::uint32_t root : every_root(places, warm_up))
        whole.groups[0].script.push_back({.root = rank_of(root), .bytes = bytes});
    GroupWorld group_world(std::move(whole));
    return cost_of(group_world, "ours", warm_up, places.ranks(), bytes);
}

constexpr const char* kTitles[] = {"binomial tree, unaware", "two levels, by machine", "two levels, by site",
                                   "multilevel tree", "ours"};

Figure compare(const FigureOptions& options, const char* title, const Places& places) {
    Figure figure{
        .title = title,
        .x = {"bytes", 2},
        .y = {"microseconds until the last rank has it", 10},
        .columns = {"bytes"},
        .remarks = {
            fmt::format(
                "machines at each site: {}; {} ranks on each; every rank is the root once, means over "
                "the roots",
                fmt::join(places.machines, ", "), places.ranks_per_machine),
            "us: the last rank; wan: how often a message's bytes crossed links between sites, all links and "
            "directions together; port: how often they went into the machine that they entered most often"}};
    constexpr const char* kCosts[] = {"us", "wan", "port"};
    for (const char* what : kCosts) {
        for (const TreeShape shape : kTreeShapes)
            figure.columns.push_back(fmt::format("{}_{}", name_of(shape), what));
        figure.columns.push_back(fmt::format("ours_{}", what));
    }
    for (std::size_t i = 0; i < std::size(kTitles); ++i) figure.curves.push_back({i + 1, kTitles[i]});
    for (const std::uint64_t bytes : {8, 64, 512, 4096, 16384, 65536, 262144, 1048576}) {
        if (options.quick && bytes != 8 && bytes != 65536) continue;
        std::vector<Cost> costs;
        for (const TreeShape shape : kTreeShapes) {
            options.begin(fmt::format("{} bytes, {}", bytes, name_of(shape)));
            costs.push_back(cost_of_tree(options, places, shape, bytes));
        }
        options.begin(fmt::format("{} bytes, ours", bytes));
        costs.push_back(cost_of_ours(options, places, bytes));
        std::vector<double>& row = figure.rows.emplace_back(1, static_cast<double>(bytes));
        for (std::size_t what = 0; what < std::size(kCosts); ++what)
            for (const Cost& cost : costs) row.push_back(cost[what]);
    }
    return figure;
}

}  // namespace

std::vector<NamedFigure> site_figures() {
    const auto ranks = [](const FigureOptions& options) { return options.quick ? 4U : 16U; };
    return {{"karonis-wan", "trees against hierarchy, wide area", "ethernet",
             [=](const FigureOptions& options) {
                 return compare(options, "Broadcast over a wide area: two sites, a machine at each",
                                {{1, 1}, ranks(options)});
             }},
            {"karonis-lan", "trees against hierarchy, local area", "ethernet",
             [=](const FigureOptions& options) {
                 return compare(options, "Broadcast over a local area: two machines", {{2}, ranks(options)});
             }},
            {"karonis-both", "trees against hierarchy, both", "ethernet",
             [=](const FigureOptions& options) {
                 return compare(options, "Broadcast over both: a machine at one site, two at the other",
                                {{1, 2}, ranks(options)});
             }},
            {"karonis-clusters", "the same with a cluster at each of two sites", "ethernet",
             [](const FigureOptions& options) {
                 return compare(options, "Broadcast over two sites, a cluster at each",
                                {{8, 8}, options.quick ? 2U : 4U});
             }}};
}

}  // namespace mcastcoll::sim
