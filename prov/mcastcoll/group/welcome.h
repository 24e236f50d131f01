// The welcome that makes a group: what rank 0 puts into it, but for the key and the addresses, which need
// chance and sockets; how members read their places in it; and what a member does not accept.
#pragma once

#include <span>

#include "engine/config.h"
#include "group/member_table.h"
#include "group/port.h"
#include "levels/selection.h"
#include "topology/map.h"
#include "wire/protection.h"

namespace mcastcoll::group {

// How a group is to work: what the user's variables and its set say, rank 0's for all members.
inline constexpr unsigned kMostChannels = 64;
inline constexpr unsigned kMostRootDelayUs = 100'000;

struct GroupSettings {
    engine::Repair repair = engine::Repair::pull;
    engine::Redundancy redundancy = engine::Redundancy::automatic;
    unsigned channels = 16;  // of the sync policy
    engine::RootSync root_sync = engine::RootSync::none;
    unsigned root_delay_us = 0;
    // No member accepts less than its own wish.
    wire::Security security = wire::Security::off;
    // Members take GMAC where all of them would.
    bool gmac = false;
};

// Nothing is known of who sends nonsense.
topology::Place decode_place(const wire::ByteString& place);

// Of the members that a welcome names, under rank 0's policy. Who says nothing, or nonsense, is a host of its
// own, in the site of all others like it.
topology::Map make_map(const wire::Welcome& welcome);
std::vector<levels::MemberPlace> places_in(const topology::Map& map);
// For each of these members of one host, its clusters inside the host, outside in.
std::vector<std::vector<std::uint32_t>> clusters_in_host(const topology::Map& map, levels::Ranks members);

inline constexpr std::uint32_t kLeastFragment = 512, kMostFragment = 8192;
inline constexpr std::uint32_t kLeastWindow = 16, kMostWindow = 512;
// A fragment has to be worth its header; an offer of less is none.
inline constexpr std::uint32_t kLeastDatagram = kLeastFragment + wire::kHeaderBytes;

// Of these guests, who are all there, as rank 0 wishes. selection: the user's rows.
wire::Welcome make_welcome(const wire::JoinId& id, const Guests& guests, const GroupSettings& settings,
                           const topology::Policy& policy, std::span<const levels::Row> selection);
// Whom a member passes a welcome on to: hosts' leaders hand it down a tree of hosts, and each host's members
// down a tree of their own. So it is told in O(log members) steps, and nobody tells it to many.
struct Below {
    std::vector<std::uint32_t> leaders, on_host;
};
Below whom_to_welcome(const levels::Placement& placement);
// Where they are, seen from rank 0.
levels::Placement placement_of(const wire::Welcome& welcome);

// Over verbs go groups all of whose hosts can: on the same kind of fabric, which the kind of their sources
// tells, and with room for another group. Null: it goes; else why not, of which rank.
struct Hindrance {
    const char* why = nullptr;
    std::uint32_t rank = 0;
};
Hindrance hindrance_to_verbs(const Guests& guests, const levels::Placement& placement);

// Fragments and windows that every host's leader can take; over verbs it has another source of multicasts,
// too.
void fit_datagrams(wire::Welcome& welcome, const Guests& guests, const levels::Placement& placement,
                   bool verbs);

// A key of this group's alone, for one purpose: rank 0 draws the names that it comes from anew for each.
wire::Key key_of_group(const wire::Agreement& agreement, const wire::Key& join_key, std::string_view purpose,
                       std::uint64_t number = 0);

// Whether a group can work as this says.
bool acceptable(const wire::Agreement& agreement);

// A welcome as it comes to a host's leader, part after part, from one who sends them in order.
class Arrival {
  public:
    // True: that was the last one. most_bytes: that a welcome can have.
    bool add(const wire::WelcomePart& part, std::size_t most_bytes);
    wire::ByteString take() { return std::exchange(bytes_, {}); }

  private:
    wire::ByteString bytes_;
};
// To who knows the join as the head says.
std::vector<wire::ByteString> parts_of(Bytes welcome, const wire::WordHead& head);

}  // namespace mcastcoll::group
