#include "message_tree.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <span>

namespace mcastcoll::sim {
namespace {

// An MPI library's message has a header, too; the same length as ours keeps the comparison fair.
constexpr wire::HeaderBytes kHeader{};

}  // namespace

MessageTree::MessageTree(const Conditions& conditions, std::uint32_t ranks, std::vector<Step> script,
                         Nanoseconds settle, TreeOf tree_of, const Arrival& arrival)
    : Simulation(conditions, first_numbers(ranks), std::vector<std::uint32_t>(ranks)),
      ranks_(ranks),
      script_(std::move(script)),
      arrival_(arrival),
      settle_(settle),
      tree_of_(std::move(tree_of)) {}

void MessageTree::begin_step() {
    if (begun(0) == script_.size()) return;
    const Step& step = script_[begun(0)];
    tree_ = tree_of_(ranks_, index_of(step.root));
    content_ = content_of(0, begun(0), step.bytes);
    entered_.assign(ranks_, false);
    has_.assign(ranks_, false);
    has_[index_of(step.root)] = true;
    begin(0, ranks_, ranks_, now() + settle_);
    arrival_.wake(network_, 0, ranks_, step, now() + settle_, 0, random_);
}

void MessageTree::forward(std::uint32_t rank) {
    if (!entered_[rank] || !has_[rank]) return;
    for (const std::uint32_t child : tree_[rank]) network_.send_message(rank, child, kHeader, content_);
    if (mark_done(0, rank, network_.busy_until(rank))) begin_step();
}

void MessageTree::on_message(std::uint32_t rank, std::uint32_t, Bytes message) {
    if (!std::ranges::equal(message.subspan(kHeader.size()), content_))
        complain(fmt::format("rank {} got wrong bytes in step {}", rank, begun(0) - 1));
    has_[rank] = true;
    forward(rank);
}

void MessageTree::on_wake(std::uint32_t rank, std::uint32_t) {
    entered_[rank] = true;
    forward(rank);
}

std::string MessageTree::run() {
    if (step_over) step_over(0);
    begin_step();
    while (wrong_.empty() && network_.step()) {
    }
    const bool over = begun(0) == script_.size() && tracks_[0].unfinished == 0;
    return wrong_.empty() && !over ? fmt::format("step {} never ended", begun(0)) : wrong_;
}

namespace {

using Ranks = std::vector<std::uint32_t>;

// Members with the same number belong together.
struct Level {
    std::uint32_t (Layout::*cluster)(std::uint32_t rank) const;
    void (*connect_leaders)(Tree& tree, const Ranks& members);  // members[0] is the root of the others
};

void connect_flat(Tree& tree, const Ranks& members) {
    tree[members[0]].insert(tree[members[0]].end(), members.begin() + 1, members.end());
}

// Counted from the root, member v forwards the message to v + 2^k for every 2^k below v's lowest set bit, the
// farthest first.
void connect_binomial(Tree& tree, const Ranks& members) {
    const auto count = static_cast<std::uint32_t>(members.size());
    for (std::uint32_t v = 0; v < count; ++v) {
        std::uint32_t bit = v == 0 ? std::bit_ceil(count) : v & (~v + 1);
        for (bit >>= 1; bit > 0; bit >>= 1)
            if (v + bit < count) tree[members[v]].push_back(members[v + bit]);
    }
}

// Puts the root first, then the members after the root, then the members before the root, in order.
void rotate_to(Ranks& members, std::uint32_t root) {
    std::rotate(members.begin(), std::ranges::find(members, root), members.end());
}

void build(Tree& tree, Ranks members, std::uint32_t root, const Layout& layout,
           std::span<const Level> levels) {
    if (levels.empty()) {
        rotate_to(members, root);
        return connect_binomial(tree, members);
    }
    const auto cluster_of = [&](std::uint32_t rank) { return (layout.*levels[0].cluster)(rank); };
    std::map<std::uint32_t, Ranks> clusters;
    for (const std::uint32_t rank : members) clusters[cluster_of(rank)].push_back(rank);
    Ranks leaders;
    for (const auto& [cluster, inside] : clusters)
        leaders.push_back(cluster == cluster_of(root) ? root : inside[0]);
    rotate_to(leaders, root);
    levels[0].connect_leaders(tree, leaders);
    for (const std::uint32_t leader : leaders)
        build(tree, clusters[cluster_of(leader)], leader, layout, levels.subspan(1));
}

}  // namespace

TreeOf tree_of(TreeShape shape, const Layout& layout) {
    static constexpr Level kByMachine[] = {{&Layout::machine, connect_flat}},
                           kBySite[] = {{&Layout::site, connect_flat}},
                           kMultilevel[] = {{&Layout::site, connect_flat},
                                            {&Layout::machine, connect_binomial}};
    static constexpr std::span<const Level> kLevels[] = {{}, kByMachine, kBySite, kMultilevel};
    return [layout, levels = kLevels[static_cast<std::uint8_t>(shape)]](std::uint32_t ranks,
                                                                        std::uint32_t root) {
        Tree tree(ranks);
        build(tree, first_numbers(ranks), root, layout, levels);
        return tree;
    };
}

}  // namespace mcastcoll::sim
