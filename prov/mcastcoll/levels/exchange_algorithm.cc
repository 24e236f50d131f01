#include "levels/exchange_algorithm.h"

namespace mcastcoll::levels {
namespace {

struct Named {
    ExchangeAlgorithm algorithm;
    std::string_view name;
    std::array<bool, 5> serves;  // allgather, gather, scatter, alltoall, reduce_scatter
};

constexpr std::array kNamed = {
    Named{ExchangeAlgorithm::linear, "linear", {false, true, true, true, false}},
    Named{ExchangeAlgorithm::binomial, "binomial", {false, true, true, false, false}},
    Named{ExchangeAlgorithm::pairwise, "pairwise", {false, false, false, true, true}},
    Named{ExchangeAlgorithm::bruck, "bruck", {true, false, false, true, false}},
    Named{ExchangeAlgorithm::ring, "ring", {true, false, false, false, false}},
};

bool serves(const Named& one, Kind kind) {
    return moves_blocks(kind) && one.serves[ExchangePolicy::index(kind)];
}

}  // namespace

std::string_view name_of(ExchangeAlgorithm algorithm) {
    return kNamed[static_cast<std::size_t>(algorithm)].name;
}

std::optional<ExchangeAlgorithm> exchange_algorithm_named(Kind kind, std::string_view name) {
    for (const Named& one : kNamed)
        if (one.name == name && serves(one, kind)) return one.algorithm;
    return std::nullopt;
}

std::string exchange_algorithm_names(Kind kind) {
    std::string names;
    for (const Named& one : kNamed)
        if (serves(one, kind)) names.append(names.empty() ? "" : ", ").append(one.name);
    return names;
}

ExchangeAlgorithm choose(const ExchangePolicy& policy, Kind kind, std::size_t bytes, std::uint32_t members) {
    if (const auto named = policy.named[ExchangePolicy::index(kind)]; named) return *named;
    if (kind == Kind::reduce_scatter) return ExchangeAlgorithm::pairwise;
    if (kind == Kind::allgather)
        return bytes <= policy.most_bruck_allgather_bytes ? ExchangeAlgorithm::bruck
                                                          : ExchangeAlgorithm::ring;
    if (kind == Kind::alltoall)
        return bytes <= policy.most_bruck_alltoall_bytes && members >= policy.least_bruck_alltoall_members
                   ? ExchangeAlgorithm::bruck
                   : ExchangeAlgorithm::pairwise;
    return bytes <= policy.most_binomial_bytes && members >= policy.least_binomial_members
               ? ExchangeAlgorithm::binomial
               : ExchangeAlgorithm::linear;
}

}  // namespace mcastcoll::levels
