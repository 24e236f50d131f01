// mcastcoll-topo draws the tree that a broadcast follows: whole groups broadcast from every root, and every
// member must have received from its parent in the tree.
#include "engine/supply_graph.h"
#include "group/welcome.h"
#include "levels_fixture.h"
#include "topology/tree.h"

using namespace mcastcoll;
using topology::Level;

namespace {

struct Drawn {
    std::vector<topology::Place> places;
    topology::Policy policy;
};

topology::Algorithm draw_algorithm(levels::Random& random, Level level) {
    for (;;) {
        const auto drawn =
            topology::algorithm_of(static_cast<std::uint8_t>(random() % 6),
                                   static_cast<std::uint8_t>(random() % 2 * (2 + random() % 7)));
        if (drawn && drawn->allowed_at(level)) return *drawn;
    }
}

// Draws members on a few sites, segments and hosts; some have unknown levels, and some levels are off.
Drawn draw(levels::Random& random) {
    Drawn drawn;
    drawn.places.resize(1 + random() % 24);
    for (topology::Place& one : drawn.places)
        for (std::size_t i = 1; i < topology::kLevels; ++i)
            if (random() % 8 != 0) one.set(topology::level_of(i), random() % 3);
    drawn.policy.flat = random() % 16 == 0;
    for (std::size_t i = 0; i < topology::kLevels; ++i) {
        if (i > 0 && random() % 12 == 0) drawn.policy.off.add(topology::level_of(i));
        drawn.policy.algorithms.set(topology::level_of(i), draw_algorithm(random, topology::level_of(i)));
    }
    return drawn;
}

// Returns the parent of a leader among the hosts of its segment: with multicast the sender itself, otherwise
// the member that answers its NAKs.
std::uint32_t before_in_segment(const levels::Placement& own, std::uint32_t sender,
                                const topology::Algorithm& algorithm) {
    if (algorithm.shape().name == "multicast") return own.segment()[sender];
    const auto hosts = static_cast<std::uint32_t>(own.segment().size());
    const std::uint32_t arity = std::max<std::uint32_t>(1, algorithm.arity);
    return own.segment()[index_of(
        engine::SupplyGraph(hosts).supplier(rank_of(sender), rank_of(own.segment_self()), arity))];
}

// Returns the member from which a rank received the group's last broadcast.
std::uint32_t received_from(levels::Group& group, std::uint32_t rank, const topology::Policy& policy) {
    if (const auto sender = group.sender_to(rank)) return *sender;
    const levels::Placement& own = *group.member(rank).placement;
    const std::uint32_t in_segment = group.broadcaster_in_segment(own.segment_of(rank));
    if (own.leads_host() && own.segment().size() > 1 && in_segment != own.segment_self())
        return before_in_segment(own, in_segment, policy.algorithms.at(Level::segment));
    return own.host()[group.broadcaster_in_host(own.host_of(rank))];
}

}  // namespace

Test(tree_of_levels, data_comes_from_the_parent_in_the_tree, .timeout = 300) {
    for (const std::uint64_t seed : levels::seeds(150)) {
        levels::Random random(seed);
        const Drawn drawn = draw(random);
        const topology::Map map(drawn.places, drawn.policy);
        const auto name = [&](Level level) { return drawn.policy.algorithms.at(level).name(); };
        for (std::uint32_t root = 0; root < map.members(); ++root) {
            levels::Group group(group::places_in(map), seed, name(Level::wan).c_str(), 4096, "",
                                name(Level::site).c_str());
            const std::string wrong = group.run({{levels::Kind::broadcast, root, 100, false}});
            cr_assert(wrong.empty(), "%s (root %u, seed %zu)", wrong.c_str(), root,
                      static_cast<std::size_t>(seed));
            const topology::Tree tree(map, rank_of(root));
            for (std::uint32_t rank = 0; rank < map.members(); ++rank) {
                if (rank == root) continue;
                cr_assert_eq(received_from(group, rank, drawn.policy), index_of(tree.parent(rank_of(rank))),
                             "rank %u, root %u, seed %zu", rank, root, static_cast<std::size_t>(seed));
            }
        }
    }
}
