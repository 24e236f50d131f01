// Sites in the simulator: the traffic on their links, counted at the links, for trees of messages and for
// whole groups; and the times of hosts, memory and links.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>

#include "sim/group_world.h"
#include "sim/message_tree.h"

using namespace mcastcoll;
using namespace mcastcoll::sim;

TestSuite(sites, .timeout = 600);

namespace {

using Machines = std::vector<std::vector<std::uint32_t>>;  // ranks of each machine of each site

Model model_of(const Machines& sites, bool mesh) {
    Model model;
    model.layout = Layout::of(sites);
    model.wan.mesh = mesh;
    return model;
}

std::uint32_t ranks_of(const Model& model) {
    return static_cast<std::uint32_t>(model.layout.machine_of.size());
}

std::uint64_t crossings(const TrafficByLink& step, std::uint64_t bytes) {
    std::uint64_t payload = 0;
    for (const LinkTraffic& link : step.links) payload += link.payload_bytes;
    return payload / bytes;
}

// Runs all steps; returns the traffic on each link and into each machine in each step.
std::vector<TrafficByLink> run_all(Simulation& world) {
    std::vector<TrafficByLink> steps;
    TrafficByLink before;
    world.step_over = [&](std::size_t done) {
        const TrafficByLink now = world.network().link_traffic();
        if (done > 0) steps.push_back(now - before);
        before = now;
    };
    const std::string wrong = world.run();
    cr_assert(wrong.empty(), "%s", wrong.c_str());
    return steps;
}

std::vector<TrafficByLink> run_ours(const Model& model, std::uint64_t bytes, const Faults& faults = {}) {
    GroupOptions options = one_group(model);
    options.seed = 5;
    options.faults = faults;
    options.groups[0].settle = Nanoseconds::from_us(200);
    for (std::uint32_t root = 0; root < ranks_of(model); ++root)
        options.groups[0].script.push_back({.root = rank_of(root), .bytes = bytes});
    GroupWorld ours(std::move(options));
    return run_all(ours);
}

std::vector<TrafficByLink> run_tree(const Model& model, TreeShape shape, std::uint64_t bytes) {
    std::vector<Step> script;
    for (std::uint32_t root = 0; root < ranks_of(model); ++root) script.push_back(broadcast(root, bytes));
    MessageTree tree({.model = model, .seed = 5}, ranks_of(model), script, Nanoseconds::from_us(100),
                     tree_of(shape, model.layout));
    return run_all(tree);
}

// A link that leads away from the root's site carries every byte of the message once, in pieces of at least
// 16 KiB (except the last) with a header each. Any other link carries no data, only headers with credit.
void expect_one_crossing(const Model& model, const std::vector<TrafficByLink>& steps, std::uint64_t bytes) {
    const std::uint32_t sites =
        *std::max_element(model.layout.site_of.begin(), model.layout.site_of.end()) + 1;
    cr_assert_eq(steps.size(), ranks_of(model));
    for (std::uint32_t root = 0; root < ranks_of(model); ++root)
        for (std::uint32_t from = 0; from < sites; ++from)
            for (std::uint32_t to = 0; to < sites; ++to) {
                const LinkTraffic& crossed = steps[root].links[from * sites + to];
                const bool outward = from == model.layout.site(root) && to != from;
                const std::uint64_t payload = outward ? bytes : 0;
                cr_assert(crossed.payload_bytes == payload &&
                              crossed.bytes == payload + crossed.packets * wire::kHeaderBytes &&
                              crossed.packets >= outward && crossed.packets <= 2 + payload / 16384,
                          "root %u, %lu bytes, link %u to %u: %lu packets, %lu bytes, %lu of them payload",
                          root, bytes, from, to, crossed.packets, crossed.bytes, crossed.payload_bytes);
            }
}

constexpr std::uint64_t kSizes[] = {1, 8, 5000, 9000, 100'000};

}  // namespace

Test(sites, ours_crosses_each_link_once) {
    for (const Machines& sites : {Machines{{1}, {1}}, Machines{{4}, {3}}, Machines{{2, 3}, {4, 1, 2}}})
        for (const std::uint64_t bytes : kSizes) {
            const Model model = model_of(sites, false);
            expect_one_crossing(model, run_ours(model, bytes), bytes);
        }
}

Test(sites, ours_crosses_each_link_of_a_mesh_once) {
    const Model model = model_of({{2, 2}, {3}, {1, 1, 2}, {2}}, true);
    for (const std::uint64_t bytes : kSizes) expect_one_crossing(model, run_ours(model, bytes), bytes);
}

// All sites are connected to site 0 only, which their flat tree does not take into account: a root in another
// site uses its own link once for each other site.
Test(sites, ours_in_a_star_is_flat) {
    const Model model = model_of({{2}, {2}, {2}}, false);
    const std::vector<TrafficByLink> steps = run_ours(model, 50'000);
    for (std::uint32_t root = 0; root < 6; ++root)
        cr_assert_eq(crossings(steps[root], 50'000), root < 2 ? 2 : 3, "root %u", root);
}

Test(sites, ours_survives_loss_and_crosses_once) {
    const Model model = model_of({{2, 2, 2}, {1, 2, 3}}, false);
    Faults faults;
    faults.loss = 0.1;
    for (const std::uint64_t bytes : kSizes)
        expect_one_crossing(model, run_ours(model, bytes, faults), bytes);
}

// Without loss each machine but the root's receives every byte once. Across sites, leaders that receive
// nothing while the bytes are still on the long link send NAKs, and may receive a few bytes twice.
Test(sites, ours_enters_each_machine_once) {
    for (const Machines& sites : {Machines{{2, 3, 1, 4}}, Machines{{2, 2, 2}, {2, 2, 2}}})
        for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{100'000}}) {
            const Model model = model_of(sites, false);
            if (sites.size() > 1 && bytes < 10'000) continue;
            const std::vector<TrafficByLink> steps = run_ours(model, bytes);
            for (std::uint32_t root = 0; root < ranks_of(model); ++root)
                for (std::uint32_t machine = 0; machine < model.layout.site_of.size(); ++machine) {
                    if (machine == model.layout.machine(root)) continue;
                    const std::uint64_t got = steps[root].into[machine].payload_bytes;
                    const std::uint64_t max = sites.size() == 1 ? bytes : bytes + bytes / 10;
                    cr_assert(got >= bytes && got <= max, "root %u, machine %u: %lu of %lu bytes", root,
                              machine, got, bytes);
                }
        }
}

Test(sites, trees_reach_every_member_once) {
    const Model model = model_of({{2, 3}, {4, 1, 2}, {1}}, true);
    const std::uint32_t ranks = ranks_of(model);
    for (const TreeShape shape : kTreeShapes)
        for (std::uint32_t root = 0; root < ranks; ++root) {
            const Tree tree = tree_of(shape, model.layout)(ranks, root);
            std::vector<std::uint32_t> reached = {root};
            for (std::size_t i = 0; i < reached.size() && i < ranks; ++i)
                reached.insert(reached.end(), tree[reached[i]].begin(), tree[reached[i]].end());
            std::sort(reached.begin(), reached.end());
            cr_assert_eq(reached.size(), ranks);
            cr_assert(std::adjacent_find(reached.begin(), reached.end()) == reached.end());
        }
}

// Two machines at the other site: a tree built by machines alone crosses twice, a tree built by sites alone
// enters a machine more than once, a tree built by both does neither.
Test(sites, trees_cross_as_often_as_they_know) {
    const Model model = model_of({{4}, {4, 4}}, false);
    std::uint64_t max_into[4] = {}, crossed[4] = {};
    for (const TreeShape shape : kTreeShapes) {
        const auto i = static_cast<std::size_t>(shape);
        for (const TrafficByLink& step : run_tree(model, shape, 1000)) {
            crossed[i] += crossings(step, 1000);
            for (const LinkTraffic& port : step.into)
                max_into[i] = std::max(max_into[i], port.payload_bytes / 1000);
        }
    }
    cr_assert_eq(crossed[3], 12);
    cr_assert_eq(crossed[2], 12);
    cr_assert_eq(crossed[1], 4 * 2 + 8);
    cr_assert_gt(crossed[0], 2 * crossed[3]);
    cr_assert_eq(max_into[3], 1);
    cr_assert_eq(max_into[1], 1);
    cr_assert_gt(max_into[2], 1);
}

// A message takes its time through memory, over the switch, and over the link, as the model says.
Test(sites, each_way_takes_its_time) {
    Model model = model_of({{2, 1}, {1}}, false);
    model.wan = {.latency = Nanoseconds::from_ms(1), .ns_per_byte = 10, .mesh = false};
    const std::uint64_t bytes = 10'000, all = bytes + wire::kHeaderBytes;
    MessageTree tree({model}, 4, {broadcast(0, bytes)}, Nanoseconds::from_us(100),
                     [](std::uint32_t, std::uint32_t) {
                         return Tree{{3, 2, 1}, {}, {}, {}};
                     });
    cr_assert(tree.run().empty());
    const auto wire = static_cast<std::int64_t>(all * 8 / 10), link = static_cast<std::int64_t>(all * 10);
    const std::int64_t sent[] = {1000, 2000, 2000 + model.memory.overhead.value};  // to ranks 3, 2, 1
    const std::int64_t memory = sent[2] + model.memory.latency.value + static_cast<std::int64_t>(all / 10);
    const std::int64_t lan = sent[0] + wire + wire + 10'000 + 1000;  // waits in the adapter behind the first
    const std::int64_t wan = sent[0] + 10'000 + 1'000'000 + link + 1000;
    const auto& times = tree.times(0);
    cr_assert_leq(std::abs(times[1].value - memory), 2, "memory: %ld, not %ld", times[1].value, memory);
    cr_assert_leq(std::abs(times[2].value - lan), 2, "switch: %ld, not %ld", times[2].value, lan);
    cr_assert_leq(std::abs(times[3].value - wan), 2, "link: %ld, not %ld", times[3].value, wan);
}

// Two messages over one link: the second waits in its queue.
Test(sites, a_link_has_a_queue) {
    Model model = model_of({{1}, {1, 1}}, false);
    model.wan = {.latency = Nanoseconds::from_ms(1), .ns_per_byte = 100, .mesh = false};
    MessageTree tree({model}, 3, {broadcast(0, 10'000)}, Nanoseconds::from_us(100),
                     [](std::uint32_t, std::uint32_t) {
                         return Tree{{1, 2}, {}, {}};
                     });
    cr_assert(tree.run().empty());
    const std::int64_t apart = (tree.times(0)[2] - tree.times(0)[1]).value;
    const auto link = static_cast<std::int64_t>((10'000 + wire::kHeaderBytes) * 100);
    cr_assert_leq(std::abs(apart - link), 2, "%ld apart, not %ld", apart, link);
}
