#include "hostset/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace mcastcoll::hostset {
namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r";
    const std::size_t begin = text.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
        end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) break;
    }
    return parts;
}

// Characters allowed in a host's name or address; the agent gets the name as a separate word.
bool is_host(std::string_view name) {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view(".-_:@%").find(c) != std::string_view::npos;
    };
    return !name.empty() && name.size() <= 255 && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), fits);
}

}  // namespace

Result<std::vector<std::string>> parse_hosts(std::string_view text, char separator) {
    std::vector<std::string> hosts;
    for (std::string_view part : split(text, separator)) {
        if (separator == '\n') part = part.substr(0, part.find('#'));
        part = trimmed(part);
        if (part.empty() && separator == '\n') continue;
        if (!is_host(part)) return Error{EINVAL, fmt::format("'{}' is not the name of a host", part)};
        if (std::find(hosts.begin(), hosts.end(), part) != hosts.end())
            return Error{EINVAL, fmt::format("host {} is named twice", part)};
        hosts.emplace_back(part);
    }
    if (hosts.empty()) return Error{EINVAL, "no host is named"};
    if (hosts.size() > kMaxHosts)
        return Error{EINVAL, fmt::format("{} hosts: at most {} are allowed", hosts.size(), kMaxHosts)};
    return hosts;
}

Result<std::vector<sites::Endpoint>> parse_endpoints(std::string_view text) {
    std::vector<sites::Endpoint> endpoints;
    for (const std::string_view part : split(text, ',')) {
        auto endpoint = sites::Endpoint::parse(part);
        if (!endpoint) return endpoint.error();
        if (endpoint.value().port == 0) return Error{EINVAL, fmt::format("'{}' has no port", part)};
        endpoints.push_back(endpoint.value());
    }
    return endpoints;
}

std::string to_string(const std::vector<sites::Endpoint>& endpoints) {
    std::string text;
    for (const sites::Endpoint& endpoint : endpoints)
        text += (text.empty() ? "" : ",") + endpoint.to_string();
    return text;
}

std::string as_shell_word(std::string_view word) {
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

}  // namespace mcastcoll::hostset
