#include "topology/algorithm.h"

namespace mcastcoll::topology {
namespace {

enum ShapeNumber : std::uint8_t { kFlat, kChain, kBinomial, kAry, kMulticast, kShm, kShapes };

std::size_t flat(std::size_t, std::size_t) {
    return 0;
}
std::size_t chain(std::size_t node, std::size_t) {
    return node - 1;
}
// The lowest bit that is set goes: node 12 (1100) hangs from 8 (1000) and has 13 and 14 below it.
std::size_t binomial(std::size_t node, std::size_t) {
    return node & (node - 1);
}
std::size_t k_ary(std::size_t node, std::size_t arity) {
    return (node - 1) / arity;
}

constexpr std::array<Shape, kShapes> kTable{{
    {"flat", flat, Level::wan, Level::site, "the root sends to each"},
    {"chain", chain, Level::wan, Level::segment, "each hands on to the next"},
    {"binomial", binomial, Level::wan, Level::site, "whoever has it sends to one more, again and again"},
    {"K-ary", k_ary, Level::wan, Level::segment, "a tree with K children to a node, for example 4-ary"},
    {"multicast", flat, Level::segment, Level::segment, "one multicast reaches all"},
    {"shm", flat, Level::host, Level::core, "all read what one has written to shared memory"},
}};

constexpr std::string_view kArySuffix = "-ary";

}  // namespace

const Shape& Algorithm::shape() const {
    return kTable[shape_];
}

std::string Algorithm::name() const {
    return shape_ == kAry ? std::to_string(arity_) + std::string(kArySuffix) : std::string(shape().name);
}

std::optional<Algorithm> algorithm_of(std::uint8_t shape, std::uint8_t arity) {
    const bool has_arity = shape == kAry;
    if (shape >= kShapes || (!has_arity && arity != 0)) return std::nullopt;
    if (has_arity && (arity < 2 || arity > Algorithm::kMostArity)) return std::nullopt;
    return Algorithm(shape, arity);
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
    for (std::uint8_t i = 0; i < kShapes; ++i)
        if (i != kAry && name == kTable[i].name) return Algorithm(i);
    if (!name.ends_with(kArySuffix)) return std::nullopt;
    name.remove_suffix(kArySuffix.size());
    if (name.empty() || name.size() > 2 || name[0] == '0') return std::nullopt;
    unsigned arity = 0;
    for (const char c : name) {
        if (c < '0' || c > '9') return std::nullopt;
        arity = arity * 10 + static_cast<unsigned>(c - '0');
    }
    return algorithm_of(kAry, static_cast<std::uint8_t>(arity));
}

std::string algorithm_names(Level level) {
    std::string text;
    for (std::uint8_t i = 0; i < kShapes; ++i) {
        if (!Algorithm(i).allowed_at(level)) continue;
        if (!text.empty()) text += ", ";
        text += kTable[i].name;
        if (i == kAry) text += " (K from 2 to " + std::to_string(Algorithm::most_arity(level)) + ')';
    }
    return text;
}

Algorithms::Algorithms() {
    set(Level::segment, Algorithm(kMulticast));
    for (std::size_t i = index_of(Level::host); i < kLevels; ++i) set(level_of(i), Algorithm(kShm));
}

}  // namespace mcastcoll::topology
