#include "levels/selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/rule_line.h"
#include "wire/bytes.h"

namespace mcastcoll::levels {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeadBytes = 2, kRuleBytes = 20;

// Rows for an allgather between hosts whose blocks have at most this many bytes together.
constexpr Row allgather_row(std::uint64_t max_bytes, Choice choice, std::string_view why) {
    return {Kind::allgather, {}, {2, UINT64_MAX}, {0, max_bytes}, choice, 0, why};
}

constexpr std::array kBuiltIn = {
    allgather_row(1024, {Algorithm::reduction},
                  "all blocks fit into one contribution: up the tree, down by multicast"),
    allgather_row(1 << 20, {Algorithm::chains, 16},
                  "each member sends its block once, by multicast; receivers have room for as much at once"),
    allgather_row(UINT64_MAX, {Algorithm::chains, 2},
                  "each member sends its block once, by multicast; more at once would overrun receivers"),
};
static_assert(kBuiltIn.size() <= kMaxBuiltIn);

// The algorithms allowed for each operation. The first one is the fallback.
constexpr bool kAllowed[kKinds][kAlgorithms] = {
    // levels, messages, reduction, chains, split
    {true, false, false, false, false},  // broadcast
    {true, false, false, false, false},  // barrier
    {true, false, false, false, false},  // reduce
    {true, false, false, false, true},   // allreduce
    {false, true, true, true, false},    // allgather
    {false, true, false, false, false},  // gather
    {false, true, false, false, false},  // scatter
    {false, true, false, false, false},  // alltoall
    {false, true, false, false, false},  // reduce_scatter
};

constexpr bool is_chained(Algorithm algorithm) {
    return algorithm == Algorithm::chains || algorithm == Algorithm::split;
}

bool is_possible(Kind kind, const Choice& choice) {
    return allowed(kind, choice.algorithm) && choice.chains <= kMaxChains &&
           is_chained(choice.algorithm) == (choice.chains > 0);
}

constexpr Algorithm fallback(Kind kind) {
    return moves_blocks(kind) ? Algorithm::messages : Algorithm::levels;
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
    constexpr std::string_view kNames[kAlgorithms] = {"levels", "messages", "reduction", "chains", "split"};
    return kNames[static_cast<std::size_t>(algorithm) % kAlgorithms];
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
            if (row.members.has(members) && row.hosts.has(hosts) && rules_.size() < kMaxRows)
                rules_.push_back({row.kind, row.choice, row.bytes});
}

Choice Selection::decide(Kind kind, std::uint64_t bytes) const {
    for (const Rule& rule : rules_)
        if (rule.kind == kind && rule.bytes.has(bytes)) return rule.choice;
    return {fallback(kind), 0};
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
        wire::put(at + 4, rule.bytes.min);
        wire::put(at + 12, rule.bytes.max);
        at += kRuleBytes;
    }
    return out;
}

std::optional<Selection> Selection::decode(Bytes bytes) {
    if (bytes.size() < kHeadBytes || wire::get<std::uint8_t>(bytes.data()) != kVersion) return std::nullopt;
    const std::size_t count = wire::get<std::uint8_t>(bytes.data() + 1);
    if (count > kMaxRows || bytes.size() != kHeadBytes + kRuleBytes * count) return std::nullopt;
    Selection selection;
    for (const std::byte* at = bytes.data() + kHeadBytes; selection.rules_.size() < count; at += kRuleBytes) {
        const auto kind = wire::get<std::uint8_t>(at), algorithm = wire::get<std::uint8_t>(at + 1);
        if (kind >= kKinds || algorithm >= kAlgorithms) return std::nullopt;
        const Rule rule{static_cast<Kind>(kind),
                        {static_cast<Algorithm>(algorithm), wire::get<std::uint16_t>(at + 2)},
                        {wire::get<std::uint64_t>(at + 4), wire::get<std::uint64_t>(at + 12)}};
        if (!is_possible(rule.kind, rule.choice)) return std::nullopt;
        selection.rules_.push_back(rule);
    }
    return selection;
}

// Parsing and printing of the table.

namespace {

void append(std::string& names, std::string_view name) {
    if (!names.empty()) names += ", ";
    names += name;
}

std::string kind_names() {
    std::string names;
    for (std::size_t i = 0; i < kKinds; ++i) append(names, name_of(static_cast<Kind>(i)));
    return names;
}

std::optional<Kind> kind_of(const MccRuleWord& word) {
    for (std::size_t i = 0; i < kKinds; ++i)
        if (const auto kind = static_cast<Kind>(i); mcc_rule_is_operation(word, name_of(kind).data()))
            return kind;
    return std::nullopt;
}

std::string algorithm_names(Kind kind) {
    std::string names;
    for (std::size_t i = 0; i < kAlgorithms; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (!allowed(kind, algorithm)) continue;
        append(names, name_of(algorithm));
        if (is_chained(algorithm)) names += "[:1 to 64]";
    }
    return names;
}

std::string_view text_of(const MccRuleWord& word) {
    return {word.text, word.bytes};
}

std::optional<Choice> choice_of(Kind kind, std::string_view text) {
    const std::size_t colon = text.find(':');
    for (std::size_t i = 0; i < kAlgorithms; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (name_of(algorithm) != text.substr(0, colon)) continue;
        std::uint64_t chains = is_chained(algorithm) ? kUsualChains : 0;
        if (colon != std::string_view::npos &&
            (!mcc_rule_number(text.data() + colon + 1, text.data() + text.size(), false, &chains) ||
             chains == 0))
            break;
        if (chains > kMaxChains) break;
        const Choice choice{algorithm, static_cast<std::uint16_t>(chains)};
        if (is_possible(kind, choice)) return choice;
    }
    return std::nullopt;
}

// The shortest form of a number of bytes.
std::string bytes_text(std::uint64_t value) {
    for (const auto& [letter, bits] : {std::pair{'G', 30U}, std::pair{'M', 20U}, std::pair{'K', 10U}})
        if (value > 0 && value % (std::uint64_t{1} << bits) == 0)
            return std::to_string(value >> bits) + letter;
    return std::to_string(value);
}

std::string range_text(const Range& range, bool bytes) {
    const auto number = [&](std::uint64_t value) {
        return bytes ? bytes_text(value) : std::to_string(value);
    };
    if (range == Range{}) return "*";
    if (range.min == range.max) return number(range.min);
    return (range.min == 0 ? "" : number(range.min)) + "-" +
           (range.max == UINT64_MAX ? "" : number(range.max));
}

Result<Row> parse_row(const MccRuleLine& line) {
    if (line.count != kMccRuleChoice + 1)
        return Error{
            EINVAL,
            fmt::format(
                "a row must have five columns: operation, members, hosts, bytes, algorithm; this row has {}",
                line.count)};
    Row row;
    const std::string_view operation = text_of(line.words[kMccRuleOperation]);
    const auto kind = kind_of(line.words[kMccRuleOperation]);
    if (!kind) return Error{EINVAL, fmt::format("operation '{}' may be {}", operation, kind_names())};
    row.kind = *kind;
    if (line.wrong != 0) {
        constexpr std::array kNames = {"", "members", "hosts", "bytes"};
        return Error{
            EINVAL, fmt::format("{} '{}' may be *, N, N-M, N- or -M{}",
                                kNames[static_cast<std::size_t>(line.wrong)], text_of(line.words[line.wrong]),
                                line.wrong == kMccRuleBytes ? ", with K, M or G after a number" : "")};
    }
    const auto range = [&](int column) { return Range{line.ranges[column].min, line.ranges[column].max}; };
    row.members = range(kMccRuleMembers);
    row.hosts = range(kMccRuleHosts);
    row.bytes = range(kMccRuleBytes);
    const auto choice = choice_of(row.kind, text_of(line.words[kMccRuleChoice]));
    if (!choice)
        return Error{EINVAL,
                     fmt::format("algorithm '{}' of {} may be {}", text_of(line.words[kMccRuleChoice]),
                                 operation, algorithm_names(row.kind))};
    row.choice = *choice;
    return row;
}

}  // namespace

Result<std::vector<Row>> parse_selection(std::string_view text) {
    std::vector<Row> rows;
    for (std::uint32_t line = 1; !text.empty(); ++line) {
        const std::string_view content = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(content.size() + 1, text.size()));
        const MccRuleLine words = mcc_rule_line(content.data(), content.size());
        if (words.count == 0) continue;
        auto row = parse_row(words);
        if (row && rows.size() + kMaxBuiltIn == kMaxRows)
            row = Error{EINVAL, fmt::format("more than {} rows", kMaxRows - kMaxBuiltIn)};
        if (!row) return Error{EINVAL, fmt::format("line {}: {}", line, row.error().message)};
        rows.push_back(row.value());
        rows.back().line = line;
    }
    return rows;
}

std::string to_text(const Choice& choice) {
    const std::string_view name = name_of(choice.algorithm);
    return choice.chains > 0 ? fmt::format("{}:{}", name, choice.chains) : std::string(name);
}

std::string to_text(const Row& row) {
    return fmt::format("{:<15} {:<8} {:<8} {:<13} {}", name_of(row.kind), range_text(row.members, false),
                       range_text(row.hosts, false), range_text(row.bytes, true), to_text(row.choice));
}

}  // namespace mcastcoll::levels
