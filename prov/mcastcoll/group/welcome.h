// The welcome that makes a group: what rank 0 puts into it, but for the key and the addresses, which need
// chance and sockets; and what a member does not accept.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "group/group_settings.h"
#include "group/survey_round.h"
#include "levels/placement.h"
#include "levels/selection.h"
#include "topology/policy.h"
#include "wire/join.h"
#include "wire/packet.h"

namespace mcastcoll::group {

inline constexpr std::uint32_t kLeastFragment = 512, kMostFragment = 8192;
inline constexpr std::uint32_t kLeastWindow = 16, kMostWindow = 512;
// A fragment has to be worth its header; an offer of less is none.
inline constexpr std::uint32_t kLeastDatagram = kLeastFragment + wire::kHeaderBytes;

// What rank 0 wishes for its group.
struct Terms {
    const GroupSettings& settings;
    const topology::Policy& policy;
    std::span<const levels::Row> selection;  // the user's rows
};

// Of these guests, who are all there, at these places.
wire::Welcome make_welcome(const wire::JoinId& id, const Guests& guests,
                           std::span<const wire::ByteString> places, const Terms& terms);
// Where they are, as the welcome says: encoded, by rank; and seen from rank 0.
std::vector<wire::ByteString> places_of(const wire::Welcome& welcome);
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

// Whether a group of so many can work as this says.
bool acceptable(const wire::Welcome& welcome, std::size_t members);

}  // namespace mcastcoll::group
