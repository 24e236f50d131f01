// The welcome, which makes a group: content as set by rank 0 (except key and addresses, which need random
// numbers and sockets), derivation of members' places, and validation.
#pragma once

#include <span>

#include "engine/group_config.h"
#include "group/multicast.h"
#include "levels/selection.h"
#include "topology/map.h"
#include "wire/protection.h"

namespace mcastcoll::group {

inline constexpr unsigned kMaxChannels = 64;
inline constexpr unsigned kMaxRootDelayUs = 100'000;

// The settings of a group, from environment variables and the AV set. Rank 0's settings hold for all members.
struct GroupSettings {
    engine::Repair repair = engine::Repair::pull;
    engine::Redundancy redundancy = engine::Redundancy::automatic;
    unsigned channels = 16;  // for repair policy sync
    engine::RootSync root_sync = engine::RootSync::none;
    unsigned root_delay_us = 0;
    // A member refuses a group with less security than this.
    wire::Security security = wire::Security::off;
    // Whether this member prefers GMAC. The group uses GMAC if all members do.
    bool gmac = false;
};

// Returns an empty place for malformed bytes.
topology::Place decode_place(const wire::ByteString& place);

// The map of the members in a welcome, under rank 0's policy. Members without a valid place count as separate
// hosts in one common site.
topology::Map make_map(const wire::Welcome& welcome);
std::vector<levels::MemberPlace> places_in(const topology::Map& map);
// For each of these members of one host: its clusters inside the host, outermost first.
std::vector<std::vector<std::uint32_t>> clusters_in_host(const topology::Map& map, levels::Ranks members);

inline constexpr std::uint32_t kMinFragment = 512, kMaxFragment = 8192;
inline constexpr std::uint32_t kMinWindow = 16, kMaxWindow = 512;
// The smallest useful datagram: a smaller offer counts as no multicast.
inline constexpr std::uint32_t kMinDatagram = kMinFragment + wire::kHeaderBytes;

// Builds the welcome from all hellos with rank 0's settings. selection: the user's rows.
wire::Welcome make_welcome(const wire::JoinId& id, const Hellos& hellos, const GroupSettings& settings,
                           const topology::Policy& policy, std::span<const levels::Row> selection);
struct Below {
    std::vector<std::uint32_t> leaders, on_host;
};
// Returns the members to which a member forwards a welcome: host leaders forward along a tree of hosts, and
// the members of a host along a tree of their own. So the welcome takes O(log members) steps, and each member
// sends to a bounded number of receivers.
Below whom_to_welcome(const levels::Placement& placement);
// The placement of the members from rank 0's view.
levels::Placement placement_of(const wire::Welcome& welcome);

struct Hindrance {
    const char* why = nullptr;  // null: verbs can be used
    std::uint32_t rank = 0;
};
// Returns the first host leader that cannot use verbs multicast, and the reason. For verbs multicast the host
// leaders must be on the same kind of fabric, as shown by the size of their source addresses, and have room
// for another group.
Hindrance hindrance_to_verbs(const Hellos& hellos, const levels::Placement& placement);

// Sets a fragment size and a window that every host leader can take. With verbs, also sets the leaders'
// multicast sources.
void fit_datagrams(wire::Welcome& welcome, const Hellos& hellos, const levels::Placement& placement,
                   bool verbs);

// Derives a key for one group and one purpose. The group key and epoch in the derivation are drawn by rank 0
// for each group.
wire::Key key_of_group(const wire::Agreement& agreement, const wire::Key& join_key, std::string_view purpose,
                       std::uint64_t number = 0);

// Whether a group can work with these values.
bool acceptable(const wire::Agreement& agreement);

}  // namespace mcastcoll::group
