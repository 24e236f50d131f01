#include "topology/levels.h"

#include <algorithm>

namespace mcastcoll::topology {
namespace {

constexpr std::array<std::string_view, kLevels> kNames{"wan",  "site", "segment", "host", "package",
                                                       "numa", "l3",   "l2",      "core"};
constexpr std::array<std::string_view, kLevels> kNouns{"group",     "site",     "segment",  "host", "package",
                                                       "NUMA node", "L3 cache", "L2 cache", "core"};

}  // namespace

std::string_view name_of(Level level) {
    return kNames[index_of(level)];
}

std::string counted(Level level, std::size_t count) {
    return std::to_string(count) + ' ' + std::string(kNouns[index_of(level)]) + (count == 1 ? "" : "s");
}

std::optional<Level> level_named(std::string_view name) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) return std::nullopt;
    return level_of(static_cast<std::size_t>(found - kNames.begin()));
}

std::string level_names() {
    std::string text;
    for (std::size_t i = 1; i < kLevels; ++i) {
        if (i > 1) text += ", ";
        text += kNames[i];
    }
    return text;
}

Name::Name(std::string_view text) {
    size_ = static_cast<std::uint8_t>(std::min(text.size(), kMost));
    std::transform(text.begin(), text.begin() + size_, text_.begin(),
                   [](char c) { return c > ' ' && c < '\x7f' ? c : '?'; });
    if (text.size() > kMost) text_[kMost - 2] = text_[kMost - 1] = '.';
}

std::size_t Place::depth() const {
    return 1 + static_cast<std::size_t>(std::count_if(coordinates_.begin(), coordinates_.end(),
                                                      [](const auto& c) { return c.has_value(); }));
}

std::string Place::to_string() const {
    std::string text;
    for (std::size_t i = 0; i < kLevels; ++i) {
        if (!coordinates_[i]) continue;
        if (!text.empty()) text += ", ";
        text += kNames[i];
        text += ' ';
        text += coordinates_[i]->name.empty() ? std::to_string(coordinates_[i]->id)
                                              : std::string(coordinates_[i]->name.view());
    }
    return text.empty() ? "nowhere in particular" : text;
}

// FNV-1a with the finaliser of SplitMix64, because FNV alone leaves the high bits of short names alike.
std::uint64_t Place::id_of_name(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
    return hash ^ hash >> 31;
}

}  // namespace mcastcoll::topology
