#include "topology/algorithms.h"

#include <array>
#include <charconv>
#include <cstdint>

namespace mcastcoll::topology {
namespace {

enum ShapeNumber : std::uint8_t { kFlat, kChain, kBinomial, kAry, kMulticast, kShm, kShapes };

// The root sends to each node; with multicast or shared memory, to all at once.
std::size_t flat(std::size_t, std::size_t) {
    return 0;
}
// Each node forwards to the next node.
std::size_t chain(std::size_t node, std::size_t) {
    return node - 1;
}
// In each round every node with the data sends to another node. The parent is the node number without its
// lowest set bit: node 12 (1100) has the parent 8 (1000) and the children 13 and 14.
std::size_t binomial(std::size_t node, std::size_t) {
    return node & (node - 1);
}
std::size_t k_ary(std::size_t node, std::size_t arity) {
    return (node - 1) / arity;
}

constexpr std::array<Shape, kShapes> kTable{{
    {"flat", flat, Level::wan, Level::site},
    {"chain", chain, Level::wan, Level::segment},
    {"binomial", binomial, Level::wan, Level::site},
    {"K-ary", k_ary, Level::wan, Level::segment},
    {"multicast", flat, Level::segment, Level::segment},
    {"shm", flat, Level::host, Level::core},
}};
constexpr std::string_view kArySuffix = "-ary";

}  // namespace

const Shape& Algorithm::shape() const {
    return kTable[number];
}

std::string Algorithm::name() const {
    return number == kAry ? std::to_string(arity) + std::string(kArySuffix) : std::string(shape().name);
}

std::optional<Algorithm> algorithm_of(std::uint8_t shape, std::uint8_t arity) {
    const bool has_arity = shape == kAry;
    if (shape >= kShapes || (!has_arity && arity != 0)) return std::nullopt;
    if (has_arity && (arity < 2 || arity > Algorithm::kMaxArity)) return std::nullopt;
    return Algorithm{shape, arity};
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
    for (std::uint8_t i = 0; i < kShapes; ++i)
        if (i != kAry && name == kTable[i].name) return Algorithm{i};
    if (!name.ends_with(kArySuffix)) return std::nullopt;
    name.remove_suffix(kArySuffix.size());
    std::uint8_t arity = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), arity);
    if (error != std::errc() || end != name.data() + name.size() || name[0] == '0') return std::nullopt;
    return algorithm_of(kAry, arity);
}

std::string algorithm_names(Level level) {
    std::string text;
    for (std::uint8_t i = 0; i < kShapes; ++i) {
        if (!Algorithm{i}.allowed_at(level)) continue;
        if (!text.empty()) text += ", ";
        text += kTable[i].name;
        if (i == kAry) text += " (K from 2 to " + std::to_string(Algorithm::max_arity(level)) + ')';
    }
    return text;
}

Algorithms::Algorithms() {
    set(Level::segment, Algorithm{kMulticast});
    for (std::size_t i = index_of(Level::host); i < kLevels; ++i) set(level_of(i), Algorithm{kShm});
}

}  // namespace mcastcoll::topology
