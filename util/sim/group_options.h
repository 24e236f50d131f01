// What a world of whole groups is told: who is where, which groups there are, and what goes wrong.
#pragma once

#include <optional>
#include <vector>

#include "shared_plan.h"
#include "simulation.h"
#include "wire/protection.h"

namespace mcastcoll::sim {

struct GroupOptions : Conditions {       // the model's layout follows from the rest
    std::vector<std::uint32_t> host_of;  // of each process
    std::vector<std::uint32_t> site_of;  // of each host
    std::vector<GroupPlan> groups;       // joined by each of their processes in this order
    wire::JoinKey key;                   // of all groups; none: strangers are not told from members
    wire::Security security = wire::Security::off;
    // Of what is heard: comes first as a stranger has changed it, whose checksum is right; of messages: comes
    // again.
    double forged = 0;
    double words_doubled = 0;           // of a join, later, as by somebody who has heard them
    double ends_repeated = 0;           // of messages: words of an earlier run's end come before them
    std::size_t messages_at_once = 32;  // that one process may have under way
    bool tells_failed_sends = true;     // to processes that are gone
    Nanoseconds watch_delay = Nanoseconds::from_ms(20);
    Nanoseconds calls_within;  // joins are called up to this late
    Nanoseconds join_timeout = Nanoseconds::from_ms(10'000);
    // after: all members together have completed that many. Hosts are processes here.
    std::optional<Strike> death, pause;
    std::optional<Strike> restart;   // dies, and another starts in its place, which counts its joins anew
    std::optional<Strike> gives_up;  // closes what it has not joined yet
    std::uint32_t counted = 0;       // joins of the same members before, by processes that have not restarted
    std::optional<std::uint32_t> never_calls, silent;  // a process that does not join; one without surveys
    std::optional<std::uint32_t>
        other_secret;  // a process that has another one: its lists have other numbers
    Nanoseconds pause_length;
    Nanoseconds stall_timeout = kNever;                    // after which whoever is waited for is given up
    std::optional<std::uint32_t> no_memory, no_multicast;  // a process that has none
};

}  // namespace mcastcoll::sim
