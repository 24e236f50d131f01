// The three figures of Karonis, de Supinski, Foster, Gropp, Lusk and Bresnahan, "Exploiting Hierarchy in
// Parallel Computer Networks to Optimize Collective Operation Performance" (IPDPS 2000): broadcasts over a
// wide area, over a local one, and over both, by a tree that knows nothing of the network, by trees that know
// two levels, by one that knows all, and by ours. Every rank is the root once. What each costs on the slow
// links is counted, not derived.
#include <fmt/format.h>

#include <stdexcept>

#include "figure.h"
#include "group_world.h"
#include "message_tree.h"

namespace mcastcoll::sim {
namespace {

struct Places {
    std::vector<std::uint32_t> machines;  // of each site
    std::uint32_t ranks_per_machine;

    std::uint32_t ranks() const {
        std::uint32_t sum = 0;
        for (const std::uint32_t here : machines) sum += here * ranks_per_machine;
        return sum;
    }
    Layout layout() const {
        Layout layout;
        for (std::uint32_t site = 0; site < machines.size(); ++site)
            layout.site_of.insert(layout.site_of.end(), machines[site], site);
        for (std::uint32_t rank = 0; rank < ranks(); ++rank)
            layout.machine_of.push_back(rank / ranks_per_machine);
        return layout;
    }
};

// Of one broadcast, or the mean of many.
struct Cost {
    double last_us = 0;
    double wan = 0;   // message sizes that crossed links between sites, all links and directions together
    double port = 0;  // message sizes that went into the machine that got most
    double times = 0;
};

// Looks at the network's counters whenever a broadcast is over.
class Meter {
  public:
    Meter(const Places& places, std::uint64_t bytes) : places_(places), bytes_(static_cast<double>(bytes)) {}

    void look(const Network& network) {
        std::uint64_t wan = 0, port = 0;
        for (std::uint32_t from = 0; from < network.wan().sites(); ++from)
            for (std::uint32_t to = 0; to < network.wan().sites(); ++to)
                if (from != to) wan += network.wan().crossed(from, to).payload_bytes;
        std::vector<std::uint64_t> into;
        for (std::uint32_t machine = 0; machine < places_.ranks() / places_.ranks_per_machine; ++machine) {
            into.push_back(network.into(machine).payload_bytes);
            if (!into_.empty()) port = std::max(port, into.back() - into_[machine]);
        }
        if (!into_.empty()) {
            cost_.wan += static_cast<double>(wan - wan_) / bytes_;
            cost_.port += static_cast<double>(port) / bytes_;
        }
        wan_ = wan;
        into_ = std::move(into);
    }
    void time(const std::vector<Nanoseconds>& times) {
        cost_.last_us += in_us(*std::max_element(times.begin(), times.end()));
        ++cost_.times;
    }
    Cost mean() const {
        return {cost_.last_us / cost_.times, cost_.wan / cost_.times, cost_.port / cost_.times, 1};
    }

  private:
    const Places& places_;
    const double bytes_;
    std::uint64_t wan_ = 0;
    std::vector<std::uint64_t> into_;
    Cost cost_;
};

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
    Meter meter(places, bytes);
    const Model model = model_for(options, places);
    std::vector<Step> script;
    for (const std::uint32_t root : every_root(places, 0)) script.push_back(broadcast(root, bytes));
    MessageTree tree({.model = model, .seed = options.seed}, places.ranks(), std::move(script), kSettle,
                     tree_of(shape, model.layout));
    tree.step_over = [&](std::uint64_t) { meter.look(tree.network()); };
    if (const std::string wrong = tree.run(); !wrong.empty())
        throw std::runtime_error(fmt::format("{}, {} bytes: {}", name_of(shape), bytes, wrong));
    for (std::uint32_t root = 0; root < places.ranks(); ++root) meter.time(tree.times(root));
    return meter.mean();
}

// Engines measure round trips in the first broadcasts, which are not counted.
Cost cost_of_ours(const FigureOptions& options, const Places& places, std::uint64_t bytes) {
    const std::uint32_t warm_up = 8;
    Meter meter(places, bytes);
    GroupOptions whole = one_group(model_for(options, places));
    whole.seed = options.seed;
    whole.groups[0].settle = kSettle;
    for (const std::uint32_t root : every_root(places, warm_up))
        whole.groups[0].script.push_back({.root = rank_of(root), .bytes = bytes});
    GroupWorld ours(std::move(whole));
    ours.step_over = [&](std::uint32_t, std::size_t done) {
        if (done >= warm_up) meter.look(ours.network());
    };
    if (const std::string wrong = ours.run(); !wrong.empty())
        throw std::runtime_error(fmt::format("ours, {} bytes: {}", bytes, wrong));
    for (std::uint32_t root = 0; root < places.ranks(); ++root) meter.time(ours.times(0, warm_up + root));
    return meter.mean();
}

constexpr const char* kTitles[] = {"binomial tree, unaware", "two levels, by machine", "two levels, by site",
                                   "multilevel tree", "ours"};

Figure compare(const FigureOptions& options, const char* title, const Places& places) {
    Figure figure;
    figure.title = title;
    figure.x = {"bytes", 2};
    figure.y = {"microseconds until the last rank has it", 10};
    figure.columns = {"bytes"};
    for (const char* what : {"us", "wan", "port"}) {
        for (const TreeShape shape : kTreeShapes)
            figure.columns.push_back(fmt::format("{}_{}", name_of(shape), what));
        figure.columns.push_back(fmt::format("ours_{}", what));
    }
    for (std::size_t i = 0; i < std::size(kTitles); ++i) figure.curves.push_back({i + 1, kTitles[i]});
    figure.remarks = {
        fmt::format(
            "machines at each site: {}; {} ranks on each; every rank is the root once, means over the roots",
            fmt::join(places.machines, ", "), places.ranks_per_machine),
        "us: the last rank; wan: how often a message's bytes crossed links between sites, all links and "
        "directions "
        "together; port: how often they went into the machine that they entered most often"};
    for (const std::uint64_t bytes : {8, 64, 512, 4096, 16384, 65536, 262144, 1048576}) {
        if (options.quick && bytes != 8 && bytes != 65536) continue;
        std::vector<Cost> costs;
        for (const TreeShape shape : kTreeShapes) {
            options.begin(fmt::format("{} bytes, {}", bytes, name_of(shape)));
            costs.push_back(cost_of_tree(options, places, shape, bytes));
        }
        options.begin(fmt::format("{} bytes, ours", bytes));
        costs.push_back(cost_of_ours(options, places, bytes));
        std::vector<double> row{static_cast<double>(bytes)};
        for (const Cost& cost : costs) row.push_back(cost.last_us);
        for (const Cost& cost : costs) row.push_back(cost.wan);
        for (const Cost& cost : costs) row.push_back(cost.port);
        figure.rows.push_back(std::move(row));
    }
    return figure;
}

std::uint32_t per_machine(const FigureOptions& options) {
    return options.quick ? 4 : 16;
}

}  // namespace

Figure figure_karonis_wan(const FigureOptions& options) {
    return compare(options, "Broadcast over a wide area: two sites, a machine at each",
                   {.machines = {1, 1}, .ranks_per_machine = per_machine(options)});
}

Figure figure_karonis_lan(const FigureOptions& options) {
    return compare(options, "Broadcast over a local area: two machines",
                   {.machines = {2}, .ranks_per_machine = per_machine(options)});
}

Figure figure_karonis_both(const FigureOptions& options) {
    return compare(options, "Broadcast over both: a machine at one site, two at the other",
                   {.machines = {1, 2}, .ranks_per_machine = per_machine(options)});
}

Figure figure_karonis_clusters(const FigureOptions& options) {
    return compare(options, "Broadcast over two sites, a cluster at each",
                   {.machines = {8, 8}, .ranks_per_machine = options.quick ? 2U : 4U});
}

}  // namespace mcastcoll::sim
