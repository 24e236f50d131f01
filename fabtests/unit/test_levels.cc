// The hierarchy: every kind of operation over every shape of group, and the traffic between sites.
#include "levels_fixture.h"

namespace mcastcoll::levels {

TestSuite(levels, .timeout = 300);

Test(levels, all_kinds_over_all_shapes) {
    for (std::size_t shape = 0; shape < kShapes.size(); ++shape)
        for (const std::uint64_t seed : seeds(60)) {
            Random random(seed * 1000 + shape);
            Group group(kShapes[shape], seed);
            const std::string wrong = group.run(random_script(random, kShapes[shape]));
            cr_assert(wrong.empty(), "%s (shape %zu, seed %zu)", wrong.c_str(), shape,
                      static_cast<std::size_t>(seed));
        }
}

Test(levels, all_shapes_of_the_tree_between_segments) {
    const std::vector<MemberPlace> six_segments = {{0, 0}, {1, 1}, {2, 2}, {0, 0},
                                                   {3, 3}, {4, 4}, {5, 5}, {4, 6}};
    for (const char* algorithm : {"flat", "chain", "binomial", "2-ary", "3-ary"})
        for (const std::uint64_t seed : seeds(30)) {
            Random random(seed);
            Group group(six_segments, seed, algorithm);
            const std::string wrong = group.run(random_script(random, six_segments));
            cr_assert(wrong.empty(), "%s (%s, seed %zu)", wrong.c_str(), algorithm,
                      static_cast<std::size_t>(seed));
        }
}

Test(levels, all_kinds_over_two_sites) {
    for (const char* algorithm : {"flat", "chain", "2-ary"})
        for (const std::uint64_t seed : seeds(40)) {
            Random random(seed);
            Group group(kTwoSites, seed, algorithm);
            const std::string wrong = group.run(random_script(random, kTwoSites));
            cr_assert(wrong.empty(), "%s (%s, seed %zu)", wrong.c_str(), algorithm,
                      static_cast<std::size_t>(seed));
        }
}

// Only one of a site's two segments receives from other sites, whichever member is the root.
Test(levels, each_link_between_sites_is_crossed_once) {
    constexpr std::size_t kElements = 3000, kBytes = kElements * sizeof(double);
    for (std::uint32_t root = 0; root < kTwoSites.size(); ++root) {
        Group broadcast(kTwoSites, 1 + root);
        cr_assert(broadcast.run({{Kind::broadcast, root, kElements, false}}).empty());
        cr_assert_eq(broadcast.bytes_between_sites(), kBytes);
        cr_assert_eq(broadcast.bytes_between_segments(), 3 * kBytes);
        Group reduce(kTwoSites, 1 + root);
        cr_assert(reduce.run({{Kind::reduce, root, kElements, false}}).empty());
        cr_assert_eq(reduce.bytes_between_sites(), kBytes);
        Group allreduce(kTwoSites, 1 + root);
        cr_assert(allreduce.run({{Kind::allreduce, 0, kElements, false}}).empty());
        cr_assert_eq(allreduce.bytes_between_sites(), 2 * kBytes);
    }
}

// The same inputs give the same bits, whichever member comes first.
Test(levels, results_do_not_depend_on_timing) {
    const std::vector<Work> script(3, Work{Kind::allreduce, 0, 1000, false});
    std::vector<double> first;
    for (const std::uint64_t seed : seeds(20)) {
        Group group(kShapes.back(), seed);
        cr_assert(group.run(script).empty());
        for (std::size_t rank = 0; rank < kShapes.back().size(); ++rank) {
            const std::vector<double>& result = group.member(rank).works[1].buffer;
            if (first.empty()) first = result;
            cr_assert(result == first, "rank %zu, seed %zu", rank, static_cast<std::size_t>(seed));
        }
    }
}

// A message crosses to each other site once; a vector once in each direction.
Test(levels, each_link_between_segments_is_crossed_once) {
    constexpr std::size_t kElements = 3000, kBytes = kElements * sizeof(double);
    for (std::uint32_t root = 0; root < kShapes.back().size(); ++root) {
        Group broadcast(kShapes.back(), 1 + root);
        cr_assert(broadcast.run({{Kind::broadcast, root, kElements, false}}).empty());
        cr_assert_eq(broadcast.bytes_between_segments(), 2 * kBytes);
        Group allreduce(kShapes.back(), 1 + root);
        cr_assert(allreduce.run({{Kind::allreduce, 0, kElements, false}}).empty());
        cr_assert_eq(allreduce.bytes_between_segments(), 4 * kBytes);
    }
}

// No operation waits for ever: a member that is informed of a failure ends its operations at once.
Test(levels, failure_ends_all_of_a_member) {
    Group group(kShapes.back(), 7);
    Member& one = group.member(0);
    std::vector<double> data(100);
    Request request;
    request.buffer = reinterpret_cast<std::byte*>(data.data());
    request.bytes = 800;
    request.kind = Kind::broadcast;
    request.root = rank_of(1);
    cr_assert_eq(one.planner->submit(request, {}), 0);
    request.kind = Kind::allreduce;
    request.input = request.buffer;
    request.combiner = kSum;
    cr_assert_eq(one.planner->submit(request, {}), 0);
    group.fail(0, ECONNRESET);
    cr_assert(one.errors == std::vector<int>(2, ECONNRESET));
    cr_assert_eq(one.planner->submit(request, {}), ECONNRESET);
}

// One member has no data to exchange and is done; the other's block reveals the disagreement.
Test(levels, a_contradiction_with_nothing_open_fails_the_group) {
    Group group(kShapes.back(), 8);
    Member& one = group.member(0);
    Member& other = group.member(one.placement->members() - 1);
    std::vector<double> input(one.placement->members()), result(input.size());
    Request request;
    request.kind = Kind::alltoall;
    request.input = reinterpret_cast<std::byte*>(input.data());
    request.buffer = reinterpret_cast<std::byte*>(result.data());
    cr_assert_eq(one.planner->submit(request, {}), 0);
    for (int turn = 0; turn < 4; ++turn) one.planner->progress({});
    cr_assert(one.errors == std::vector<int>(1, 0));
    request.bytes = sizeof(double);
    cr_assert_eq(other.planner->submit(request, {}), 0);
    other.planner->progress({});
    for (Outgoing out; other.exchange->poll_outgoing(out);)
        if (out.to == 0) one.exchange->on_message(letter(out), {});
    one.planner->progress({});
    cr_assert_eq(one.planner->error(), EMSGSIZE);
}

}  // namespace mcastcoll::levels
