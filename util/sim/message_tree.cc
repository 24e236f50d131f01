#include "message_tree.h"

#include <fmt/format.h>

#include <bit>
#include <span>

namespace mcastcoll::sim {
namespace {

// A message of an MPI library carries a header, too; one as long as ours keeps the comparison fair.
constexpr wire::HeaderBytes kHeader{};

}  // namespace

MessageTree::MessageTree(const Conditions& conditions, std::uint32_t ranks, std::vector<Step> script,
                         Nanoseconds settle, TreeOf tree_of, const Arrival& arrival)
    : Simulation(conditions, first_numbers(ranks), std::vector<std::uint32_t>(ranks)),
      ranks_(ranks),
      script_(std::move(script)),
      arrival_(arrival),
      settle_(settle),
      tree_of_(std::move(tree_of)),
      times_(script_.size()) {}

void MessageTree::begin_step() {
    if (step_over) step_over(step_);
    if (step_ == script_.size()) return;
    const Step& step = script_[step_];
    tree_ = tree_of_(ranks_, index_of(step.root));
    content_ = content_of(0, step_, step.bytes);
    entered_.assign(ranks_, false);
    has_.assign(ranks_, false);
    times_[step_].resize(ranks_);
    has_[index_of(step.root)] = true;
    unfinished_ = ranks_;
    began_at_ = now() + settle_;
    arrival_.wake(network_, 0, ranks_, step, began_at_, 0, random_);
}

void MessageTree::forward(std::uint32_t rank) {
    if (!entered_[rank] || !has_[rank]) return;
    for (const std::uint32_t child : tree_[rank]) network_.send_message(rank, child, kHeader, content_);
    times_[step_][rank] = network_.busy_until(rank) - began_at_;
    if (--unfinished_ > 0) return;
    ++step_;
    begin_step();
}

void MessageTree::on_message(std::uint32_t rank, std::uint32_t, Bytes message) {
    const Bytes payload = message.subspan(kHeader.size());
    if (!std::equal(payload.begin(), payload.end(), content_.begin(), content_.end()))
        complain(fmt::format("rank {} got wrong bytes in step {}", rank, step_));
    has_[rank] = true;
    forward(rank);
}

void MessageTree::on_wake(std::uint32_t rank, std::uint32_t) {
    entered_[rank] = true;
    forward(rank);
}

std::string MessageTree::run() {
    begin_step();
    while (wrong_.empty() && network_.step()) {
    }
    if (wrong_.empty() && step_ < script_.size()) return fmt::format("step {} never ended", step_);
    return wrong_;
}

namespace {

using Ranks = std::vector<std::uint32_t>;
using ClusterOf = std::function<std::uint32_t(std::uint32_t rank)>;
using Connect = void (*)(Tree& tree, const Ranks& members);  // members[0] is the root of the others

struct Level {
    ClusterOf cluster_of;
    Connect leaders;  // how the clusters' leaders are connected
};

void connect_flat(Tree& tree, const Ranks& members) {
    tree[members[0]].insert(tree[members[0]].end(), members.begin() + 1, members.end());
}

// Counted from the root, member v passes the message on to v + 2^k for every 2^k below v's lowest set bit,
// the farthest first.
void connect_binomial(Tree& tree, const Ranks& members) {
    const auto count = static_cast<std::uint32_t>(members.size());
    for (std::uint32_t v = 0; v < count; ++v) {
        std::uint32_t bit = v == 0 ? std::bit_ceil(count) : v & (~v + 1);
        for (bit >>= 1; bit > 0; bit >>= 1)
            if (v + bit < count) tree[members[v]].push_back(members[v + bit]);
    }
}

// The root first, then those behind it, then those before it, all in order.
void rotate_to(Ranks& members, std::uint32_t root) {
    std::rotate(members.begin(), std::find(members.begin(), members.end(), root), members.end());
}

void build(Tree& tree, Ranks members, std::uint32_t root, std::span<const Level> levels) {
    if (levels.empty()) {
        rotate_to(members, root);
        return connect_binomial(tree, members);
    }
    std::vector<std::uint32_t> clusters;  // in the order of their lowest ranks
    std::vector<Ranks> inside;
    for (const std::uint32_t rank : members) {
        const std::uint32_t cluster = levels[0].cluster_of(rank);
        const auto at = std::find(clusters.begin(), clusters.end(), cluster) - clusters.begin();
        if (static_cast<std::size_t>(at) == clusters.size()) {
            clusters.push_back(cluster);
            inside.emplace_back();
        }
        inside[static_cast<std::size_t>(at)].push_back(rank);
    }
    Ranks leaders;
    for (const Ranks& cluster : inside)
        leaders.push_back(std::find(cluster.begin(), cluster.end(), root) == cluster.end() ? cluster[0]
                                                                                           : root);
    rotate_to(leaders, root);
    levels[0].leaders(tree, leaders);
    for (Ranks& cluster : inside) {
        const std::uint32_t leader =
            std::find(cluster.begin(), cluster.end(), root) == cluster.end() ? cluster[0] : root;
        build(tree, std::move(cluster), leader, levels.subspan(1));
    }
}

Tree build_all(std::uint32_t ranks, std::uint32_t root, std::span<const Level> levels) {
    Tree tree(ranks);
    Ranks members(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) members[rank] = rank;
    build(tree, std::move(members), root, levels);
    return tree;
}

}  // namespace

Tree binomial_tree(std::uint32_t ranks, std::uint32_t root) {
    return build_all(ranks, root, {});
}

TreeOf tree_of(TreeShape shape, const Layout& layout) {
    const ClusterOf site = [layout](std::uint32_t rank) { return layout.site(rank); };
    const ClusterOf machine = [layout](std::uint32_t rank) { return layout.machine(rank); };
    std::vector<Level> levels;
    switch (shape) {
        case TreeShape::binomial:
            break;
        case TreeShape::by_machine:
            levels = {{machine, connect_flat}};
            break;
        case TreeShape::by_site:
            levels = {{site, connect_flat}};
            break;
        case TreeShape::multilevel:
            levels = {{site, connect_flat}, {machine, connect_binomial}};
            break;
    }
    return [levels](std::uint32_t ranks, std::uint32_t root) { return build_all(ranks, root, levels); };
}

}  // namespace mcastcoll::sim
