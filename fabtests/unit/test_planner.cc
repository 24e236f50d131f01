// Composite operations: over every shape of group, with every algorithm, mixed and many at once.
#include "levels_fixture.h"

namespace mcastcoll::levels {
namespace {

constexpr const char* kSelections[] = {
    "",
    "allgather * * * reduction",
    "allgather * * * chains:1",
    "allgather * * * chains:2\nallreduce * * 16- split:2",
    "allgather * * * chains:64\nallreduce * * 16- split:64",
    "allgather * * * messages\nallreduce * * * split:1",
};

}  // namespace

TestSuite(planner, .timeout = 300);

Test(planner, all_kinds_by_all_algorithms_over_all_shapes) {
    for (const char* selection : kSelections)
        for (std::size_t shape = 0; shape < kShapes.size(); ++shape)
            for (const std::uint64_t seed : seeds(10)) {
                Random random(seed * 1000 + shape);
                Group group(kShapes[shape], seed, "flat", 4096, selection);
                const std::string wrong = group.run(random_script(random, kShapes[shape]));
                cr_assert(wrong.empty(), "%s (shape %zu, seed %zu, selection %s)", wrong.c_str(), shape,
                          static_cast<std::size_t>(seed), selection);
            }
}

// More members than the number of parts that an operation may have open at once.
Test(planner, more_members_than_the_window) {
    for (const char* selection : kSelections) {
        Group group(on_hosts(20, 2), 3, "flat", 4096, selection);
        const std::string wrong = group.run({{Kind::allgather, 0, 30, false},
                                             {Kind::broadcast, 39, 100, false},
                                             {Kind::allgather, 0, 7, true},
                                             {Kind::allreduce, 0, 77, true}});
        cr_assert(wrong.empty(), "%s (selection %s)", wrong.c_str(), selection);
    }
}

// Fills the levels below until they have no room, repeatedly.
Test(planner, many_in_flight) {
    std::vector<Work> script(60, Work{Kind::allgather, 0, 11, false});
    for (std::size_t i = 0; i < script.size(); i += 3) script[i] = {Kind::broadcast, 1, 50, false};
    for (std::size_t i = 1; i < script.size(); i += 9) script[i] = {Kind::allreduce, 0, 40, true};
    for (const char* selection : kSelections) {
        Group group(kShapes[4], 5, "flat", 4096, selection);
        const std::string wrong = group.run(script);
        cr_assert(wrong.empty(), "%s (selection %s)", wrong.c_str(), selection);
    }
}

// Each block crosses from its site to each other site once.
Test(planner, chains_cross_between_sites_once) {
    constexpr std::size_t kElements = 3000, kBytes = kElements * sizeof(double);
    const auto& shape = kShapes.back();
    Group group(shape, 1, "flat", 4096, "allgather * * * chains:2");
    cr_assert(group.run({{Kind::allgather, 0, kElements, false}}).empty());
    cr_assert_eq(group.bytes_between_segments(), shape.size() * 2 * kBytes);
    for (std::size_t rank = 0; rank < shape.size(); ++rank)
        cr_assert_eq(group.member(rank).planner->counters().block_bytes_broadcast, kBytes);
}

// Member 0 posts nothing yet: a member in the chain that begins with member 0 waits, a member at the start of
// a chain does not.
Test(planner, roots_wait_for_their_chain) {
    for (const auto& [selection, arrives] :
         {std::pair{"allgather * * * chains:1", false}, std::pair{"allgather * * * chains:2", true}}) {
        Group group(kShapes[2], 1, "flat", 4096, selection);
        std::vector<std::vector<std::uint64_t>> results(3, std::vector<std::uint64_t>(300, UINT64_MAX));
        const auto submit = [&](std::uint32_t rank) {
            std::fill_n(results[rank].begin() + 100 * rank, 100, rank);
            Request request;
            request.kind = Kind::allgather;
            request.buffer = reinterpret_cast<std::byte*>(results[rank].data());
            request.input = request.buffer + 800 * rank;
            request.bytes = 800;
            cr_assert_eq(group.member(rank).planner->submit(request, {}), 0);
        };
        const auto turn = [&] {
            for (int i = 0; i < 200; ++i)
                for (std::size_t rank = 0; rank < 3; ++rank) group.member(rank).planner->progress({});
        };
        submit(1);
        submit(2);
        turn();
        cr_assert_eq(results[2][100] == 1, arrives, "%s", selection);
        cr_assert_eq(results[1][200], UINT64_MAX, "%s", selection);
        submit(0);
        turn();
        for (const auto& result : results)
            for (std::size_t i = 0; i < 300; ++i) cr_assert_eq(result[i], i / 100, "%s", selection);
    }
}

// The same inputs give the same bits, whichever member comes first.
Test(planner, results_do_not_depend_on_timing) {
    const std::vector<Work> script(2, Work{Kind::allreduce, 0, 1000, true});
    std::vector<double> first;
    for (const std::uint64_t seed : seeds(10)) {
        Group group(kShapes.back(), seed, "flat", 4096, "allreduce * * * split:3");
        cr_assert(group.run(script).empty());
        for (std::size_t rank = 0; rank < kShapes.back().size(); ++rank) {
            const std::vector<double>& result = group.member(rank).works[1].buffer;
            if (first.empty()) first = result;
            cr_assert(result == first, "rank %zu, seed %zu", rank, static_cast<std::size_t>(seed));
        }
    }
}

// A failure ends operations that are posted, operations that wait for room, and later ones.
Test(planner, failure_ends_all_composite_operations) {
    Group group(on_hosts(20, 2), 7, "flat", 4096, "allgather * * * chains:2");
    Planner& one = *group.member(0).planner;
    std::vector<double> block(10), result(400);
    Request request;
    request.kind = Kind::allgather;
    request.input = reinterpret_cast<std::byte*>(block.data());
    request.buffer = reinterpret_cast<std::byte*>(result.data());
    request.bytes = 80;
    for (request.cookie = 0; request.cookie < 3; ++request.cookie) cr_assert_eq(one.submit(request, {}), 0);
    cr_assert_eq(one.open_operations(), 3);
    group.fail(0, ECONNRESET);
    cr_assert(group.member(0).errors == std::vector<int>(3, ECONNRESET));
    cr_assert(group.member(0).cookies == (std::vector<std::uint64_t>{0, 1, 2}));
    cr_assert_eq(one.submit(request, {}), ECONNRESET);
}

Test(planner, each_choice_is_reported_once) {
    Group group(kShapes[2], 1, "flat", 4096, "allgather * * -1K reduction\nallgather * * * chains:3");
    const auto gather = [](std::size_t elements) { return Work{Kind::allgather, 0, elements, false}; };
    cr_assert(group.run({gather(10), gather(20)}).empty());
    Planner& one = *group.member(1).planner;
    const auto news = one.poll_news();
    cr_assert(news.has_value());
    cr_assert_eq(news->choice.algorithm, Algorithm::reduction);
    cr_assert_eq(news->bytes, 240);
    cr_assert_not(one.poll_news().has_value());
}

}  // namespace mcastcoll::levels
