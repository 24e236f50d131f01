#include "levels/selection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "wire/bytes.h"

namespace mcastcoll::levels {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeadBytes = 2, kRuleBytes = 20;

// An allgather's, between hosts, whose blocks have up to so many bytes together.
constexpr Row allgather_row(std::uint64_t most_bytes, Choice choice, std::string_view why) {
    return {Kind::allgather, {}, {2, UINT64_MAX}, {0, most_bytes}, choice, 0, why};
}

constexpr std::array kBuiltIn = {
    allgather_row(1024, {Algorithm::reduction},
                  "all blocks fit into one contribution: up the tree, down by multicast"),
    allgather_row(1 << 20, {Algorithm::chains, 16},
                  "each member sends its block once, by multicast; receivers have room for as much at once"),
    allgather_row(UINT64_MAX, {Algorithm::chains, 2},
                  "each member sends its block once, by multicast; more at once would overrun receivers"),
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

constexpr bool is_chained(Algorithm algorithm) {
    return algorithm == Algorithm::chains || algorithm == Algorithm::split;
}

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
        if (!allowed(rule.kind, rule.choice.algorithm) || rule.choice.chains > kMostChains ||
            is_chained(rule.choice.algorithm) != (rule.choice.chains > 0))
            return std::nullopt;
        selection.rules_.push_back(rule);
    }
    return selection;
}

// The table of algorithms as text, in and out.

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kColumns = 5;

std::string quote(std::string_view text) {
    return "'" + std::string(text) + "'";
}

std::string kind_names() {
    std::string names;
    for (std::size_t i = 0; i < kKinds; ++i)
        names += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Kind>(i)));
    return names;
}

std::string algorithm_names(Kind kind) {
    std::string names;
    for (std::size_t i = 0; i < kAlgorithms; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (!allowed(kind, algorithm)) continue;
        if (!names.empty()) names += ", ";
        names += name_of(algorithm);
        if (is_chained(algorithm)) names += "[:1 to 64]";
    }
    return names;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (true) {
        const std::size_t from = line.find_first_not_of(kBlanks);
        if (from == std::string_view::npos) return words;
        line.remove_prefix(from);
        const std::size_t to = std::min(line.find_first_of(kBlanks), line.size());
        words.push_back(line.substr(0, to));
        line.remove_prefix(to);
    }
}

// A number, with K, M or G for powers of 1024.
std::optional<std::uint64_t> number_of(std::string_view text, bool suffixes) {
    std::uint64_t value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc() || last - end > 1) return std::nullopt;
    if (end == last) return value;
    const std::size_t power = std::string_view("KMG").find(*end);
    if (!suffixes || power == std::string_view::npos) return std::nullopt;
    const auto bits = static_cast<unsigned>(10 * (power + 1));
    if (value > UINT64_MAX >> bits) return std::nullopt;
    return value << bits;
}

std::optional<Range> range_of(std::string_view text, bool suffixes) {
    if (text == "*") return Range{};
    const std::size_t dash = text.find('-');
    const std::string_view first = text.substr(0, dash);
    Range range;
    if (dash == std::string_view::npos) {
        const auto only = number_of(first, suffixes);
        if (!only) return std::nullopt;
        return Range{*only, *only};
    }
    const std::string_view last = text.substr(dash + 1);
    if (first.empty() && last.empty()) return std::nullopt;
    for (const auto& [word, end] : {std::pair{first, &range.least}, std::pair{last, &range.most}}) {
        if (word.empty()) continue;
        const auto value = number_of(word, suffixes);
        if (!value) return std::nullopt;
        *end = *value;
    }
    if (range.least > range.most) return std::nullopt;
    return range;
}

std::optional<Choice> choice_of(Kind kind, std::string_view text) {
    const std::size_t colon = text.find(':');
    for (std::size_t i = 0; i < kAlgorithms; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (name_of(algorithm) != text.substr(0, colon) || !allowed(kind, algorithm)) continue;
        Choice choice{algorithm, 0};
        if (is_chained(algorithm)) {
            const auto chains = colon == std::string_view::npos ? std::optional<std::uint64_t>(kUsualChains)
                                                                : number_of(text.substr(colon + 1), false);
            if (!chains || *chains < 1 || *chains > kMostChains) return std::nullopt;
            choice.chains = static_cast<std::uint16_t>(*chains);
        } else if (colon != std::string_view::npos) {
            return std::nullopt;
        }
        return choice;
    }
    return std::nullopt;
}

// The shortest way to write a number of bytes.
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
    if (range.least == range.most) return number(range.least);
    return (range.least == 0 ? "" : number(range.least)) + "-" +
           (range.most == UINT64_MAX ? "" : number(range.most));
}

Result<Row> parse_row(const std::vector<std::string_view>& words) {
    const auto refuse = [](std::string what) { return Error{EINVAL, std::move(what)}; };
    if (words.size() != kColumns)
        return refuse("a row has five columns: operation, members, hosts, bytes, algorithm; this one has " +
                      std::to_string(words.size()));
    Row row;
    std::size_t kind = 0;
    while (kind < kKinds && name_of(static_cast<Kind>(kind)) != words[0]) ++kind;
    if (kind == kKinds) return refuse("operation " + quote(words[0]) + " may be " + kind_names());
    row.kind = static_cast<Kind>(kind);
    constexpr std::array<std::string_view, 3> kNames = {"members", "hosts", "bytes"};
    const std::array<Range*, 3> ranges = {&row.members, &row.hosts, &row.bytes};
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const bool bytes = ranges[i] == &row.bytes;
        const auto range = range_of(words[1 + i], bytes);
        if (!range)
            return refuse(std::string(kNames[i]) + " " + quote(words[1 + i]) + " may be *, N, N-M, N- or -M" +
                          (bytes ? ", with K, M or G after a number" : ""));
        *ranges[i] = *range;
    }
    const auto choice = choice_of(row.kind, words[4]);
    if (!choice)
        return refuse("algorithm " + quote(words[4]) + " of " + std::string(words[0]) + " may be " +
                      algorithm_names(row.kind));
    row.choice = *choice;
    return row;
}

}  // namespace

Result<std::vector<Row>> parse_selection(std::string_view text) {
    std::vector<Row> rows;
    for (std::uint32_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view content = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto words = words_of(content.substr(0, content.find('#')));
        if (words.empty()) continue;
        const auto complain = [&](const std::string& what) {
            return Error{EINVAL, "line " + std::to_string(line) + ": " + what};
        };
        auto row = parse_row(words);
        if (!row) return complain(row.error().message);
        if (rows.size() + kBuiltInMost == kMostRows)
            return complain("more than " + std::to_string(kMostRows - kBuiltInMost) + " rows");
        rows.push_back(row.value());
        rows.back().line = line;
    }
    return rows;
}

std::string to_text(const Choice& choice) {
    std::string text(name_of(choice.algorithm));
    if (choice.chains > 0) text += ":" + std::to_string(choice.chains);
    return text;
}

std::string to_text(const Row& row) {
    const std::string columns[] = {std::string(name_of(row.kind)), range_text(row.members, false),
                                   range_text(row.hosts, false), range_text(row.bytes, true)};
    constexpr std::size_t kWidths[] = {16, 9, 9, 14};
    std::string line;
    std::size_t end = 0;
    for (std::size_t i = 0; i < std::size(columns); ++i) {
        line += columns[i] + " ";
        line.resize(std::max(line.size(), end += kWidths[i]), ' ');
    }
    return line + to_text(row.choice);
}

}  // namespace mcastcoll::levels
