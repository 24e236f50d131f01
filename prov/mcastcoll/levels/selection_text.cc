// The table of algorithms as text, in and out.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "levels/selection.h"

namespace mcastcoll::levels {
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
        if (algorithm == Algorithm::chains || algorithm == Algorithm::split) names += "[:1 to 64]";
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
        if (algorithm == Algorithm::chains || algorithm == Algorithm::split) {
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
