// The supply graph, for every small group, root, reachability map and arity.
#include <criterion/criterion.h>

#include <algorithm>
#include <vector>

#include "engine/rank_list.h"
#include "engine/supply_graph.h"

using namespace mcastcoll;
using engine::RankList;
using engine::SupplyGraph;

namespace {

struct Case {
    std::uint32_t members = 1;
    std::vector<bool> deaf, mute;
};

bool contains(const RankList& list, Rank rank) {
    return std::find(list.begin(), list.end(), rank) != list.end();
}

// Returns all reachability maps of groups of up to 4 members; for larger groups, maps with no member, one,
// some, or all unreachable.
std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (std::uint32_t n = 1; n <= 12; ++n) {
        auto add = [&](std::uint32_t deaf, std::uint32_t mute) {
            Case c{n, std::vector<bool>(n), std::vector<bool>(n)};
            for (std::uint32_t i = 0; i < n; ++i) {
                c.deaf[i] = deaf >> i & 1;
                c.mute[i] = mute >> i & 1;
            }
            cases.push_back(std::move(c));
        };
        const std::uint32_t all = (1U << n) - 1;
        if (n <= 4) {
            for (std::uint32_t deaf = 0; deaf <= all; ++deaf)
                for (std::uint32_t mute = 0; mute <= all; ++mute) add(deaf, mute);
            continue;
        }
        for (std::uint32_t i = 0; i < n; ++i) {
            add(1U << i, 0);
            add(0, 1U << i);
            add(1U << i, 1U << i);
            add(all & ~(1U << i), 0);
        }
        for (std::uint32_t pattern : {0U, 0x555U, 0xaaaU, 0x0f3U, 0xfffU}) {
            add(pattern & all, 0);
            add(pattern & all, 0x249U & all);
        }
    }
    return cases;
}

std::vector<Rank> listed(const std::vector<bool>& flags) {
    std::vector<Rank> ranks;
    for (std::size_t i = 0; i < flags.size(); ++i)
        if (flags[i]) ranks.push_back(rank_of(i));
    return ranks;
}

template <typename Check>
void for_all(Check check) {
    for (const Case& c : all_cases()) {
        SupplyGraph graph(c.members);
        graph.set_map({.works = true, .deaf = listed(c.deaf), .mute = listed(c.mute)});
        for (std::uint32_t root = 0; root < c.members; ++root) check(c, graph, rank_of(root));
    }
}

constexpr std::uint32_t kArities[] = {1, 2, 3, 4, 8};

}  // namespace

TestSuite(supply_graph, .timeout = 300);

Test(supply_graph, every_member_has_one_supplier_that_serves_it) {
    for_all([](const Case& c, const SupplyGraph& graph, Rank root) {
        for (std::uint32_t arity : kArities) {
            cr_assert(graph.supplier(root, root, arity) == kNoRank);
            std::vector<std::uint32_t> supplied(c.members);
            for (std::uint32_t r = 0; r < c.members; ++r) {
                const RankList clients = graph.clients(root, rank_of(r), arity);
                cr_assert_leq(clients.count, arity + 1);
                for (Rank client : clients) {
                    cr_assert(client != root, "the edge back to the root");
                    ++supplied[index_of(client)];
                    cr_assert(graph.supplier(root, client, arity) == rank_of(r));
                }
            }
            for (std::uint32_t r = 0; r < c.members; ++r)
                cr_assert_eq(supplied[r], rank_of(r) == root ? 0U : 1U, "n=%u root=%u rank=%u arity=%u",
                             c.members, index_of(root), r, arity);
        }
    });
}

Test(supply_graph, suppliers_lead_to_the_root) {
    for_all([](const Case& c, const SupplyGraph& graph, Rank root) {
        for (std::uint32_t arity : kArities)
            for (std::uint32_t r = 0; r < c.members; ++r) {
                Rank at = rank_of(r);
                std::uint32_t hops = 0;
                for (; at != root && hops < c.members; ++hops) at = graph.supplier(root, at, arity);
                cr_assert(at == root, "n=%u root=%u rank=%u arity=%u", c.members, index_of(root), r, arity);
            }
    });
}

Test(supply_graph, receiving_members_form_a_ring_in_rank_order) {
    for_all([](const Case& c, const SupplyGraph& graph, Rank root) {
        Rank before = root;
        for (std::uint32_t i = 1; i < c.members; ++i) {
            const Rank rank = rank_of((index_of(root) + i) % c.members);
            const bool should = !c.mute[index_of(root)] && !c.deaf[index_of(rank)];
            cr_assert_eq(graph.receives(root, rank), should);
            if (!graph.receives(root, rank)) continue;
            for (std::uint32_t arity : kArities) cr_assert(graph.supplier(root, rank, arity) == before);
            before = rank;
        }
        cr_assert_eq(graph.multicasts(root), before != root);
        cr_assert(!graph.receives(root, root));
    });
}

Test(supply_graph, the_deaf_hang_in_a_tree_below_the_root) {
    for_all([](const Case& c, const SupplyGraph& graph, Rank root) {
        for (std::uint32_t arity : kArities)
            for (std::uint32_t r = 0; r < c.members; ++r) {
                const Rank rank = rank_of(r);
                if (rank == root || graph.receives(root, rank)) continue;
                const Rank supplier = graph.supplier(root, rank, arity);
                cr_assert(supplier == root || !graph.receives(root, supplier),
                          "no deaf member depends on a member that may wait for a repair");
                std::uint32_t same_sort = 0;
                for (Rank client : graph.clients(root, supplier, arity))
                    same_sort += !graph.receives(root, client);
                cr_assert_leq(same_sort, arity);
            }
    });
}

Test(supply_graph, reports_cover_exactly_the_receiving_members) {
    for_all([](const Case& c, const SupplyGraph& graph, Rank root) {
        for (std::uint32_t arity : kArities) {
            cr_assert(graph.report_parent(root, root, arity) == kNoRank);
            for (std::uint32_t r = 0; r < c.members; ++r) {
                const Rank rank = rank_of(r);
                const RankList children = graph.report_children(root, rank, arity);
                cr_assert_leq(children.count, arity);
                for (Rank child : children) {
                    cr_assert(graph.receives(root, child));
                    cr_assert(graph.report_parent(root, child, arity) == rank);
                }
                if (!graph.receives(root, rank)) {
                    cr_assert(graph.report_parent(root, rank, arity) == kNoRank);
                    if (rank != root) cr_assert_eq(children.count, 0U);
                    continue;
                }
                cr_assert(contains(graph.report_children(root, graph.report_parent(root, rank, arity), arity),
                                   rank));
                Rank at = rank;
                std::uint32_t hops = 0;
                for (; at != root && hops < c.members; ++hops) at = graph.report_parent(root, at, arity);
                cr_assert(at == root);
            }
        }
    });
}

Test(supply_graph, a_rank_set_is_the_list_it_stands_for) {
    for (const Case& c : all_cases()) {
        const std::vector<Rank> exceptions = listed(c.deaf);
        std::vector<bool> others = c.deaf;
        others.flip();
        for (bool complement : {false, true}) {
            const std::vector<Rank> expected = complement ? listed(others) : exceptions;
            const auto set =
                complement ? RankSet::all_but(exceptions, c.members) : RankSet::of(exceptions, c.members);
            cr_assert_eq(set.size(), expected.size());
            for (std::uint32_t i = 0; i < expected.size(); ++i) {
                cr_assert(set.at(i) == expected[i]);
                cr_assert(set.contains(expected[i]));
                cr_assert_eq(set.below(expected[i]), i);
            }
            for (std::uint32_t r = 0; r < c.members; ++r)
                cr_assert_eq(set.contains(rank_of(r)), c.deaf[r] != complement);
        }
    }
}

Test(supply_graph, without_a_map_no_member_receives) {
    const SupplyGraph graph(7);
    cr_assert_eq(graph.receiver_count(), 0U);
    for (std::uint32_t root = 0; root < 7; ++root) {
        cr_assert(!graph.multicasts(rank_of(root)));
        for (std::uint32_t r = 0; r < 7; ++r) cr_assert(!graph.receives(rank_of(root), rank_of(r)));
    }
}

Test(supply_graph, gather_tree_is_a_heap) {
    for (std::uint32_t n = 1; n <= 40; ++n)
        for (std::uint32_t arity : kArities) {
            std::vector<std::uint32_t> parents(n);
            for (std::uint32_t r = 0; r < n; ++r)
                for (Rank child : engine::tree_children(rank_of(r), arity, n)) {
                    cr_assert(index_of(child) < n && index_of(child) > r);
                    cr_assert(engine::tree_parent(child, arity) == rank_of(r));
                    ++parents[index_of(child)];
                }
            cr_assert(engine::tree_parent(rank_of(0), arity) == kNoRank);
            for (std::uint32_t r = 0; r < n; ++r) cr_assert_eq(parents[r], r == 0 ? 0U : 1U);
            for (std::uint32_t r = 0; r < n; ++r) {
                std::uint32_t size = 1;
                for (Rank child : engine::tree_children(rank_of(r), arity, n))
                    size += engine::tree_size(child, arity, n);
                cr_assert_eq(engine::tree_size(rank_of(r), arity, n), size);
            }
        }
}
