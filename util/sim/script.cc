#include "script.h"

#include <cassert>

#include "engine/supply_graph.h"

namespace mcastcoll::sim {

std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t most_bytes) {
    Random random(seed);
    std::vector<Step> script;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (random.below(5) == 0) {
            script.push_back(barrier());
            continue;
        }
        const auto root = static_cast<std::uint32_t>(random.below(members));
        const std::uint64_t bits = random.below(64);
        const std::uint64_t most = bits > 40 ? 63 : std::min(most_bytes, std::uint64_t{1} << (bits % 25));
        script.push_back(broadcast(root, random.between(0, most)));
    }
    return script;
}

namespace {

// inout = inout op in, for elements of N words.
template <std::size_t N, typename Op>
void for_each(void* inout, const void* in, std::size_t elements, Op op) {
    assert(reinterpret_cast<std::uintptr_t>(in) % alignof(std::uint32_t) == 0);
    assert(reinterpret_cast<std::uintptr_t>(inout) % alignof(std::uint32_t) == 0);
    auto* to = static_cast<std::uint32_t*>(inout);
    const auto* from = static_cast<const std::uint32_t*>(in);
    for (std::size_t i = 0; i < elements; ++i) op(to + i * N, from + i * N);
}

void sum(void* inout, const void* in, std::size_t elements) {
    for_each<1>(inout, in, elements, [](std::uint32_t* a, const std::uint32_t* b) { *a += *b; });
}

// Neither commutative nor associative.
void mix(void* inout, const void* in, std::size_t elements) {
    for_each<1>(inout, in, elements,
                [](std::uint32_t* a, const std::uint32_t* b) { *a = *a * 2654435761U + (*b ^ *b >> 15); });
}

// The same, of three words: fragments hold no whole number of them.
void wide(void* inout, const void* in, std::size_t elements) {
    for_each<3>(inout, in, elements, [](std::uint32_t* a, const std::uint32_t* b) {
        const std::uint32_t first = a[0];
        for (std::size_t i = 0; i < 3; ++i) a[i] = (i < 2 ? a[i + 1] : first) * 2246822519U + b[i];
    });
}

std::vector<std::byte> fold(std::uint32_t group, std::uint64_t number, const Step& step, Rank rank,
                            std::uint32_t members, std::uint32_t arity) {
    const Combiner combiner = combiner_of(step.combination);
    std::vector<std::byte> result = vector_of(group, number, index_of(rank), step.bytes);
    for (Rank child : engine::tree_children(rank, arity, members))
        combiner(result.data(), fold(group, number, step, child, members, arity).data(), step.bytes);
    return result;
}

// Makes a reduction of a broadcast.
Step reduction_of(Step step, Random& random) {
    step.kind = random.chance(0.4) ? CollectiveKind::reduce : CollectiveKind::allreduce;
    step.root = rank_of(0);
    step.combination = static_cast<Combination>(random.below(kCombinationCount));
    step.bytes -= step.bytes % combiner_of(step.combination).element_bytes;
    step.in_place = random.chance(0.4);
    return step;
}

}  // namespace

Combiner combiner_of(Combination combination) {
    switch (combination) {
        case Combination::sum:
            return {sum, 4};
        case Combination::mix:
            return {mix, 4};
        case Combination::wide:
            return {wide, 12};
    }
    return {};
}

std::vector<Step> varied_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                                std::uint64_t most_bytes) {
    Random random(~seed);
    std::vector<Step> script = mixed_script(seed, members, count, most_bytes);
    for (Step& step : script) {
        if (step.kind == CollectiveKind::broadcast && random.chance(0.4)) step = reduction_of(step, random);
        step.streamed = step.kind != CollectiveKind::barrier && random.chance(0.2);
        step.hold = engine::releases(step.kind) && random.chance(0.2);
    }
    return script;
}

std::vector<std::byte> vector_of(std::uint32_t group, std::uint64_t step, std::uint32_t rank,
                                 std::uint64_t bytes) {
    return content_of(group + 1000 * (rank + 1), step, bytes);
}

std::vector<std::byte> reduced(std::uint32_t group, std::uint64_t number, const Step& step,
                               std::uint32_t members, std::uint32_t arity) {
    std::vector<std::byte> result = fold(group, number, step, rank_of(0), members, arity);
    if (step.hold)
        combiner_of(step.combination)(result.data(), vector_of(group, number, kOutside, step.bytes).data(),
                                      step.bytes);
    return result;
}

std::vector<std::byte> content_of(std::uint32_t group, std::uint64_t step, std::uint64_t bytes) {
    Random random((step + 1) * 0x9e3779b97f4a7c15ULL + group);
    std::vector<std::byte> content(bytes);
    for (std::uint64_t at = 0; at < bytes; at += 8) {
        const std::uint64_t word = random.next();
        std::memcpy(content.data() + at, &word, std::min<std::uint64_t>(8, bytes - at));
    }
    return content;
}

void Arrival::wake(Network& network, std::uint32_t first, std::uint32_t members, const Step& step,
                   Nanoseconds start, std::uint32_t tag, Random& random) const {
    if (pattern == Pattern::together) return network.wake_run(first, members, start, tag);
    const auto late = static_cast<std::uint32_t>(random.below(members));
    for (std::uint32_t rank = 0; rank < members; ++rank)
        network.wake(first + rank, start + of(rank, step, late, random), tag);
}

Nanoseconds Arrival::of(std::uint32_t rank, const Step& step, std::uint32_t late_rank, Random& random) const {
    const bool root = rank == index_of(step.root);
    switch (pattern) {
        case Pattern::together:
            return {};
        case Pattern::skew:
            return random.up_to(by);
        case Pattern::root_first:
            return root ? Nanoseconds{} : by;
        case Pattern::root_late:
            return root ? by : Nanoseconds{};
        case Pattern::one_late:
            return rank == late_rank ? by : Nanoseconds{};
    }
    return {};
}

}  // namespace mcastcoll::sim
