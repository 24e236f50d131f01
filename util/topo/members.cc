#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "topo.h"

namespace mcastcoll::topo {
namespace {

using topology::Level;
using topology::Place;

constexpr std::size_t kMaxMembers = 1 << 20;

std::optional<std::uint64_t> number(std::string_view text, std::uint64_t max) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
    return value;
}

std::vector<std::string_view> words_of(std::string_view line, std::string_view separators) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; (at = line.find_first_not_of(separators, at)) != std::string_view::npos;) {
        const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

// Stores LEVEL=VALUE in the place; returns an error message or "".
std::string take_coordinate(std::string_view word, Place& place) {
    const std::size_t equals = word.find('=');
    const auto level = topology::level_named(word.substr(0, equals));
    if (equals == std::string_view::npos || !level || *level == Level::wan)
        return fmt::format("'{}' is not a place: write LEVEL=VALUE, the levels are {}", word,
                           topology::level_names());
    const std::string_view value = word.substr(equals + 1);
    if (!topology::is_inside_host(*level)) {
        if (value.empty()) return fmt::format("'{}' has no name", word);
        place.set_named(*level, value);
        return {};
    }
    const auto id = number(value, UINT32_MAX);
    if (!id) return fmt::format("'{}': inside a host a place is a number from 0 to 4294967295", word);
    place.set(*level, *id);
    return {};
}

struct Site {
    std::string name;
    std::uint64_t hosts = 0;
};

Result<std::vector<Site>> parse_hosts(const std::string& text) {
    const auto wrong = [&text] {
        return Error{EINVAL, fmt::format("--hosts '{}': allowed are a number of hosts from 1 to 65536, or "
                                         "SITE:HOSTS,SITE:HOSTS,...",
                                         text)};
    };
    std::vector<Site> sites;
    for (const std::string_view part : words_of(text, ",")) {
        const std::size_t colon = part.find(':');
        const bool named = colon != std::string_view::npos;
        const auto hosts = number(named ? part.substr(colon + 1) : part, 65536);
        if (!hosts || *hosts == 0 || (named && colon == 0) || (!named && text.find(',') != std::string::npos))
            return wrong();
        sites.push_back({named ? std::string(part.substr(0, colon)) : "", *hosts});
    }
    if (sites.empty()) return wrong();
    return sites;
}

// The place of each rank of a host.
Result<std::vector<Place>> ranks_of_host(const MadeUp& wanted) {
    std::vector<topology::Processors> slots;
    std::optional<topology::Machine> machine;
    if (!wanted.machine.empty()) {
        auto made = topology::Machine::of_synthetic(wanted.machine);
        if (!made) return made.error();
        machine.emplace(std::move(made).value());
        const auto level = topology::level_named(wanted.bind);
        if (wanted.bind == "none")
            slots.push_back(machine->allowed());
        else if (level && topology::is_inside_host(*level))
            slots = machine->objects(*level);
        else
            return Error{EINVAL, fmt::format("--bind '{}': allowed are none, package, numa, l3, l2, core",
                                             wanted.bind)};
        if (slots.empty())
            return Error{EINVAL,
                         fmt::format("--bind {}: the machine '{}' has none", wanted.bind, wanted.machine)};
    }
    const std::size_t ranks = wanted.ranks > 0 ? wanted.ranks : std::max<std::size_t>(1, slots.size());
    std::vector<Place> places(ranks);
    for (std::size_t i = 0; machine && i < ranks; ++i) machine->locate(slots[i % slots.size()], places[i]);
    return places;
}

}  // namespace

Result<std::vector<Place>> parse_members(std::string_view text, std::string_view file) {
    std::vector<Place> places;
    std::size_t number_of_line = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = text.substr(at, end - at);
        at = end + 1;
        ++number_of_line;
        const auto wrong = [&](const std::string& why) {
            return Error{EINVAL, fmt::format("{} line {}: {}", file, number_of_line, why)};
        };
        line = line.substr(0, line.find('#'));
        auto words = words_of(line, " \t\r");
        if (words.empty()) continue;
        std::uint64_t count = 1;
        if (words[0].ends_with('*')) {
            const auto given = number(words[0].substr(0, words[0].size() - 1), kMaxMembers);
            if (!given || *given == 0)
                return wrong(fmt::format("'{}': allowed are 1* to {}*", words[0], kMaxMembers));
            count = *given;
            words.erase(words.begin());
        }
        Place place;
        for (const std::string_view word : words)
            if (std::string why = take_coordinate(word, place); !why.empty()) return wrong(why);
        if (places.size() + count > kMaxMembers)
            return wrong(fmt::format("more than {} members", kMaxMembers));
        places.insert(places.end(), count, place);
    }
    if (places.empty()) return Error{EINVAL, fmt::format("{}: it contains no member", file)};
    return places;
}

Result<std::vector<Place>> make_members(const MadeUp& wanted) {
    auto sites = parse_hosts(wanted.hosts);
    if (!sites) return sites.error();
    auto ranks = ranks_of_host(wanted);
    if (!ranks) return ranks.error();
    std::vector<std::vector<Place>> hosts;
    for (const Site& site : sites.value()) {
        for (std::uint64_t i = 0; i < site.hosts; ++i) {
            std::vector<Place>& host = hosts.emplace_back(ranks.value());
            if (hosts.size() * ranks.value().size() > kMaxMembers)
                return Error{E2BIG, fmt::format("more than {} members", kMaxMembers)};
            const std::string name = fmt::format("h{}", hosts.size() - 1);
            for (Place& place : host) {
                if (!site.name.empty()) place.set_named(Level::site, site.name);
                place.set_named(Level::host, name);
            }
        }
    }
    std::vector<Place> places;
    if (wanted.order == "block") {
        for (const auto& host : hosts) places.insert(places.end(), host.begin(), host.end());
    } else if (wanted.order == "cyclic") {
        for (std::size_t i = 0; i < ranks.value().size(); ++i)
            for (const auto& host : hosts) places.push_back(host[i]);
    } else {
        return Error{EINVAL, fmt::format("--order '{}': allowed are block, cyclic", wanted.order)};
    }
    return places;
}

}  // namespace mcastcoll::topo
