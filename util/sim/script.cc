#include "script.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/effects.h"
#include "engine/supply_graph.h"
#include "random.h"
#include "reduce/slices.h"

namespace mcastcoll::sim {
namespace {

// out = one op other, for elements of N words, with the same bytes on every processor.
template <std::size_t N, typename Op>
void for_each(void* out, const void* one, const void* other, std::size_t elements, Op op) {
    for ([[maybe_unused]] const void* at : {static_cast<const void*>(out), one, other})
        assert(reinterpret_cast<std::uintptr_t>(at) % alignof(std::uint32_t) == 0);
    const auto *first = static_cast<const std::uint32_t*>(one),
               *second = static_cast<const std::uint32_t*>(other);
    for (std::size_t i = 0; i < elements * N; i += N) {
        std::array<std::uint32_t, N> a, b;
        std::transform(first + i, first + i + N, a.begin(), little_endian<std::uint32_t>);
        std::transform(second + i, second + i + N, b.begin(), little_endian<std::uint32_t>);
        op(a.data(), b.data());
        std::transform(a.begin(), a.end(), static_cast<std::uint32_t*>(out) + i,
                       little_endian<std::uint32_t>);
    }
}

void sum(void* out, const void* one, const void* other, std::size_t elements) {
    for_each<1>(out, one, other, elements, [](std::uint32_t* a, const std::uint32_t* b) { *a += *b; });
}

// An operation that is neither commutative nor associative.
void mix(void* out, const void* one, const void* other, std::size_t elements) {
    for_each<1>(out, one, other, elements,
                [](std::uint32_t* a, const std::uint32_t* b) { *a = *a * 2654435761U + (*b ^ *b >> 15); });
}

// Like mix(), with elements of three words: the size of a fragment is no multiple of an element's.
void wide(void* out, const void* one, const void* other, std::size_t elements) {
    for_each<3>(out, one, other, elements, [](std::uint32_t* a, const std::uint32_t* b) {
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

// Turns a broadcast into a reduction.
Step reduction_of(Step step, Random& random) {
    step.kind = random.chance(0.4) ? CollectiveKind::reduce : CollectiveKind::allreduce;
    step.root = rank_of(0);
    step.combination = static_cast<Combination>(random.below(kCombinationCount));
    step.bytes -= step.bytes % combiner_of(step.combination).element_bytes;
    step.in_place = random.chance(0.4);
    return step;
}

}  // namespace

std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t max_bytes) {
    Random random(seed);
    std::vector<Step> script;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (random.below(5) == 0) {
            script.push_back(barrier());
            continue;
        }
        const auto root = static_cast<std::uint32_t>(random.below(members));
        const std::uint64_t bits = random.below(64);
        const std::uint64_t max = bits > 40 ? 63 : std::min(max_bytes, std::uint64_t{1} << (bits % 25));
        script.push_back(broadcast(root, random.between(0, max)));
    }
    return script;
}

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
                                std::uint64_t max_bytes) {
    Random random(~seed);
    std::vector<Step> script = mixed_script(seed, members, count, max_bytes);
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

std::vector<std::byte> content_of(std::uint64_t group, std::uint64_t step, std::uint64_t bytes,
                                  std::uint64_t offset) {
    // The state of the generator advances in steps of this, so an offset is reached by a multiple.
    constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15ULL;
    Random random((step + 1 + offset / 8) * kStride + group);
    std::vector<std::byte> content(bytes);
    std::uint64_t skipped = offset % 8;
    for (std::uint64_t at = 0; at < bytes; at += 8 - std::exchange(skipped, 0)) {
        const std::uint64_t word = little_endian(random.next() >> (8 * skipped));
        std::memcpy(content.data() + at, &word, std::min<std::uint64_t>(8 - skipped, bytes - at));
    }
    return content;
}

std::vector<std::byte> outcome(const Collective& what, std::uint32_t self, std::uint32_t members,
                               const PartOfInput& part) {
    using Vector = std::vector<std::byte>;
    const auto concatenated = [&](std::size_t offset) {
        Vector all;
        all.reserve(what.bytes * members);
        for (std::uint32_t member = 0; member < members; ++member) {
            const Vector one = part(member, offset, what.bytes);
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    };
    const auto combined = [&](std::size_t offset, std::size_t bytes) {
        Vector sum = part(0, offset, bytes);
        for (std::uint32_t member = 1; member < members && bytes > 0; ++member)
            what.combiner(sum.data(), part(member, offset, bytes).data(), bytes);
        return sum;
    };
    const bool root = self == index_of(what.root);
    switch (what.kind) {
        case CollectiveKind::barrier:
            return {};
        case CollectiveKind::broadcast:
            return part(index_of(what.root), 0, what.bytes);
        case CollectiveKind::reduce:
            return root ? combined(0, what.bytes) : Vector();
        case CollectiveKind::allreduce:
            return combined(0, what.bytes);
        case CollectiveKind::allgather:
            return concatenated(0);
        case CollectiveKind::gather:
            return root ? concatenated(0) : Vector();
        case CollectiveKind::scatter:
            return part(index_of(what.root), self * what.bytes, what.bytes);
        case CollectiveKind::alltoall:
            return concatenated(self * what.bytes);
        case CollectiveKind::reduce_scatter: {
            const std::size_t element = what.combiner.element_bytes;
            const reduce::Slice own = reduce::slice_of(self, members, what.bytes / element, element);
            return combined(own.offset, own.bytes);
        }
    }
    return {};
}

}  // namespace mcastcoll::sim
