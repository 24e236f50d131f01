// Parses and prints the small values of the command line: times with a unit, shares, numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace mcastcoll::sim {

// Parses the whole text.
template <typename Number>
std::optional<Number> parse(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}
// Parses a time: "500ns", "20us", "1.5ms", "2s"; "0" needs no unit.
std::optional<Nanoseconds> parse_time(std::string_view text);
// The shortest text that parse_time() reads as the same time.
std::string to_string(Nanoseconds time);
// Parses a share from 0 to 1: "0.05" or "5%".
std::optional<double> parse_share(std::string_view text);
std::optional<double> parse_number(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace mcastcoll::sim
