#include "topology/place.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::topology {
namespace {

constexpr std::array<std::string_view, kLevels> kNames{"wan",  "site", "segment", "host", "package",
                                                       "numa", "l3",   "l2",      "core"};
constexpr std::array<std::string_view, kLevels> kNouns{"group",     "site",     "segment",  "host", "package",
                                                       "NUMA node", "L3 cache", "L2 cache", "core"};
constexpr std::uint8_t kPlaceVersion = 1;

// Reads past the end return zeros and set good to false.
struct Reader {
    Bytes rest;
    bool good = true;

    template <typename Unsigned>
    Unsigned number() {
        if (rest.size() < sizeof(Unsigned)) return good = false, Unsigned{0};
        const auto value = wire::get<Unsigned>(rest.data());
        rest = rest.subspan(sizeof(Unsigned));
        return value;
    }
    Name name() {
        const std::size_t length = number<std::uint8_t>();
        if (length > Name::kMax || length > rest.size()) return good = false, Name{};
        const Name name({reinterpret_cast<const char*>(rest.data()), length});
        rest = rest.subspan(length);
        return name;
    }
};

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
    return text.empty() ? "an unknown place" : text;
}

// Hashes with FNV-1a and the finaliser of SplitMix64, because FNV-1a alone gives short names similar high
// bits.
std::uint64_t Place::id_of_name(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
    return hash ^ hash >> 31;
}

std::vector<std::byte> encode(const Place& place) {
    std::vector<std::byte> out;
    const auto number = [&out](auto value) {
        out.resize(out.size() + sizeof value);
        wire::put(out.data() + out.size() - sizeof value, value);
    };
    out.reserve(kMaxPlaceBytes);
    number(kPlaceVersion);
    number(std::uint8_t{0});  // the count, filled in below
    std::uint8_t count = 0;
    for (std::size_t i = 1; i < kLevels; ++i) {
        const auto& coordinate = place.at(level_of(i));
        if (!coordinate) continue;
        ++count;
        number(static_cast<std::uint8_t>(i));
        if (is_inside_host(level_of(i))) {
            assert(coordinate->id <= UINT32_MAX);
            number(static_cast<std::uint32_t>(coordinate->id));
            continue;
        }
        const std::string_view name = coordinate->name.view();
        number(coordinate->id);
        number(static_cast<std::uint8_t>(name.size()));
        for (const char c : name) number(static_cast<std::uint8_t>(c));
    }
    out[1] = std::byte{count};
    return out;
}

std::optional<Place> decode_place(Bytes bytes) {
    Reader in{bytes};
    if (in.number<std::uint8_t>() != kPlaceVersion) return std::nullopt;
    const std::size_t count = in.number<std::uint8_t>();
    Place place;
    std::size_t last = 0;  // the wan, which no place contains
    for (std::size_t i = 0; i < count && in.good; ++i) {
        const std::size_t at = in.number<std::uint8_t>();
        if (at <= last || at >= kLevels) return std::nullopt;
        last = at;
        const Level level = level_of(at);
        if (is_inside_host(level)) {
            place.set(level, in.number<std::uint32_t>());
        } else {
            const auto id = in.number<std::uint64_t>();
            place.set(level, id, in.name().view());
        }
    }
    if (!in.good || !in.rest.empty()) return std::nullopt;
    return place;
}

}  // namespace mcastcoll::topology
