#include "levels/selection.h"

#include <array>

#include "wire/bytes.h"

namespace mcastcoll::levels {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeadBytes = 2, kRuleBytes = 20;

constexpr Range kSeveral{2, UINT64_MAX}, kAny{};

constexpr std::array kBuiltIn = {
    Row{Kind::allgather,
        kAny,
        kSeveral,
        {0, 1024},
        {Algorithm::reduction},
        0,
        "all blocks fit into one contribution: up the tree, down by multicast"},
    Row{Kind::allgather,
        kAny,
        kSeveral,
        {0, 1 << 20},
        {Algorithm::chains, 16},
        0,
        "each member sends its block once, by multicast; receivers have room for as much at once"},
    Row{Kind::allgather,
        kAny,
        kSeveral,
        kAny,
        {Algorithm::chains, 2},
        0,
        "each member sends its block once, by multicast; more at once would overrun receivers"},
};
static_assert(kBuiltIn.size() <= kBuiltInMost);

// What each operation may be carried out by; the first is what it falls back on.
constexpr bool kAllowed[kKinds][kAlgorithms] = {
    // levels, messages, reduction, chains, split, none
    {true, false, false, false, false, true},  // broadcast
    {true, false, false, false, false, true},  // barrier
    {true, false, false, false, false, true},  // reduce
    {true, false, false, false, true, true},   // allreduce
    {false, true, true, true, false, true},    // allgather
    {false, true, false, false, false, true},  // gather
    {false, true, false, false, false, true},  // scatter
    {false, true, false, false, false, true},  // alltoall
    {false, true, false, false, false, true},  // reduce_scatter
};

constexpr Algorithm fallback(Kind kind) {
    return moves_blocks(kind) ? Algorithm::messages : Algorithm::levels;
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
    constexpr std::string_view kNames[kAlgorithms] = {"levels", "messages", "reduction",
                                                      "chains", "split",    "none"};
    return kNames[static_cast<std::size_t>(algorithm) % kAlgorithms];
}

std::string_view name_of(Kind kind) {
    constexpr std::string_view kNames[kKinds] = {"broadcast", "barrier",   "reduce",
                                                 "allreduce", "allgather", "gather",
                                                 "scatter",   "alltoall",  "reduce_scatter"};
    return kNames[static_cast<std::size_t>(kind) % kKinds];
}

bool allowed(Kind kind, Algorithm algorithm) {
    return kAllowed[static_cast<std::size_t>(kind)][static_cast<std::size_t>(algorithm)];
}

std::span<const Row> built_in_rows() {
    return kBuiltIn;
}

std::uint64_t longest_buffer(Kind kind, std::size_t bytes, std::size_t members) {
    return moves_blocks(kind) && kind != Kind::reduce_scatter ? std::uint64_t{bytes} * members : bytes;
}

Selection::Selection(std::span<const Row> user, std::uint32_t members, std::size_t hosts) {
    for (const std::span<const Row> rows : {user, built_in_rows()})
        for (const Row& row : rows)
            if (row.members.has(members) && row.hosts.has(hosts) && rules_.size() < kMostRows)
                rules_.push_back({row.kind, row.choice, row.bytes});
}

Selection::Decision Selection::decide(Kind kind, std::uint64_t bytes) const {
    Decision decision{{fallback(kind), 0}, false};
    for (const Rule& rule : rules_) {
        if (rule.kind != kind || !rule.bytes.has(bytes)) continue;
        if (rule.choice.algorithm == Algorithm::none) {
            decision.aside = true;
            continue;
        }
        decision.choice = rule.choice;
        break;
    }
    return decision;
}

std::vector<std::byte> Selection::encode() const {
    std::vector<std::byte> out(kHeadBytes + kRuleBytes * rules_.size());
    wire::put(out.data(), kVersion);
    wire::put(out.data() + 1, static_cast<std::uint8_t>(rules_.size()));
    std::byte* at = out.data() + kHeadBytes;
    for (const Rule& rule : rules_) {
        wire::put(at, static_cast<std::uint8_t>(rule.kind));
        wire::put(at + 1, static_cast<std::uint8_t>(rule.choice.algorithm));
        wire::put(at + 2, rule.choice.chains);
        wire::put(at + 4, rule.bytes.least);
        wire::put(at + 12, rule.bytes.most);
        at += kRuleBytes;
    }
    return out;
}

std::optional<Selection> Selection::decode(Bytes bytes) {
    if (bytes.size() < kHeadBytes || wire::get<std::uint8_t>(bytes.data()) != kVersion) return std::nullopt;
    const std::size_t count = wire::get<std::uint8_t>(bytes.data() + 1);
    if (count > kMostRows || bytes.size() != kHeadBytes + kRuleBytes * count) return std::nullopt;
    Selection selection;
    for (const std::byte* at = bytes.data() + kHeadBytes; selection.rules_.size() < count; at += kRuleBytes) {
        const auto kind = wire::get<std::uint8_t>(at), algorithm = wire::get<std::uint8_t>(at + 1);
        if (kind >= kKinds || algorithm >= kAlgorithms) return std::nullopt;
        const Rule rule{static_cast<Kind>(kind),
                        {static_cast<Algorithm>(algorithm), wire::get<std::uint16_t>(at + 2)},
                        {wire::get<std::uint64_t>(at + 4), wire::get<std::uint64_t>(at + 12)}};
        const bool chained =
            rule.choice.algorithm == Algorithm::chains || rule.choice.algorithm == Algorithm::split;
        if (!allowed(rule.kind, rule.choice.algorithm) || rule.choice.chains > kMostChains ||
            chained != (rule.choice.chains > 0))
            return std::nullopt;
        selection.rules_.push_back(rule);
    }
    return selection;
}

}  // namespace mcastcoll::levels
