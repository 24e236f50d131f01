// The place of a member: the cluster it belongs to at each level, outermost first. Makes no system calls.
//
// The levels are those of Karonis et al. (2000), continued inside the host. A level is named after the shared
// resource of a cluster: a site, a host, a cache. The outermost level, the wan, has one cluster, the whole
// group. Places may differ in depth: the place of an unbound process ends at the innermost object around its
// processors, often the host.
//
// Identities are numbers, compared only within the enclosing cluster. Names are for users.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "topology/name.h"

namespace mcastcoll::topology {

enum class Level : std::uint8_t {
    wan,      // the whole group; connects sites
    site,     // networks near each other; connects the segments of a site
    segment,  // one multicast domain; connects its hosts
    host,     // shared memory; connects its processes
    package,  // levels inside a host
    numa,
    l3,
    l2,
    core,
};
inline constexpr std::size_t kLevels = 9;
constexpr std::size_t index_of(Level level) {
    return static_cast<std::size_t>(level);
}
constexpr Level level_of(std::size_t index) {
    return static_cast<Level>(index);
}
constexpr bool is_inside_host(Level level) {
    return level > Level::host;
}

// Returns "site" and so on.
std::string_view name_of(Level level);
// Returns "1 site", "2 sites" and so on.
std::string counted(Level level, std::size_t count);
std::optional<Level> level_named(std::string_view name);
// "site, segment, host ..." for error messages. The wan is left out, because it cannot be switched off.
std::string level_names();

struct LevelSet {
    std::uint16_t bits = 0;

    constexpr bool has(Level level) const { return (bits >> index_of(level) & 1) != 0; }
    constexpr void add(Level level) { bits = static_cast<std::uint16_t>(bits | 1U << index_of(level)); }
    constexpr void remove(Level level) { bits = static_cast<std::uint16_t>(bits & ~(1U << index_of(level))); }
    bool operator==(const LevelSet&) const = default;
};

struct Coordinate {
    std::uint64_t id = 0;
    Name name;  // empty inside a host, where the number is enough
    bool operator==(const Coordinate&) const = default;
};

// The place of one member. Unknown levels and the wan have no coordinate.
class Place {
  public:
    std::optional<Coordinate>& at(Level level) { return coordinates_[index_of(level)]; }
    const std::optional<Coordinate>& at(Level level) const { return coordinates_[index_of(level)]; }
    void set(Level level, std::uint64_t id, std::string_view name = {}) {
        at(level) = Coordinate{id, Name(name)};
    }
    // Sets the coordinate of a cluster that is identified by its name.
    void set_named(Level level, std::string_view name) { set(level, id_of_name(name), name); }
    // Example: "site A, host h3, package 0, core 4".
    std::string to_string() const;
    bool operator==(const Place&) const = default;

    // Returns the identity of a name: a hash that is the same on every host.
    static std::uint64_t id_of_name(std::string_view name);

  private:
    std::array<std::optional<Coordinate>, kLevels> coordinates_{};
};

// Encoding in a join message:
//
//     u8 version (1), u8 count, then for each coordinate, outside in:
//     u8 level; site, segment and host: u64 identity, u8 length, name; inside a host: u32 identity
inline constexpr std::size_t kOuterLevels = 3;
inline constexpr std::size_t kMaxPlaceBytes =
    2 + kOuterLevels * (1 + 8 + 1 + Name::kMax) + (kLevels - 1 - kOuterLevels) * (1 + 4);
static_assert(kMaxPlaceBytes <= 128);
std::vector<std::byte> encode(const Place& place);
// Accepts exactly the bytes of one place. The input is untrusted: malformed bytes give an empty result,
// without an exception.
std::optional<Place> decode_place(Bytes bytes);

}  // namespace mcastcoll::topology
