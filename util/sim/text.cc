#include "text.h"

#include <fmt/format.h>

#include <cmath>

namespace mcastcoll::sim {
namespace {

constexpr struct {
    const char* name;
    std::int64_t ns;
} kUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1000}, {"ns", 1}};

}  // namespace

std::optional<double> parse_number(std::string_view text) {
    const auto value = parse<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<Nanoseconds> parse_time(std::string_view text) {
    if (text == "0") return Nanoseconds{};
    const std::size_t digits = text.find_first_not_of("0123456789.");
    if (digits == std::string_view::npos) return std::nullopt;
    const auto value = parse_number(text.substr(0, digits));
    for (const auto& unit : kUnits)
        if (text.substr(digits) == unit.name && value && *value * static_cast<double>(unit.ns) < 1e18)
            return Nanoseconds{std::llround(*value * static_cast<double>(unit.ns))};
    return std::nullopt;
}

std::string to_string(Nanoseconds time) {
    if (time.value == 0) return "0";
    for (const auto& unit : kUnits)
        if (time.value % unit.ns == 0) return fmt::format("{}{}", time.value / unit.ns, unit.name);
    return {};
}

std::optional<double> parse_share(std::string_view text) {
    const bool percent = text.ends_with('%');
    if (percent) text.remove_suffix(1);
    const auto value = parse_number(text);
    const double max = percent ? 100 : 1;
    if (!value || *value < 0 || *value > max) return std::nullopt;
    return *value / max;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

}  // namespace mcastcoll::sim
