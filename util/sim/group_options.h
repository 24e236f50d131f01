// Options of a world of whole groups: placement, groups, and faults.
#pragma once

#include <optional>
#include <vector>

#include "shared_group.h"
#include "simulation.h"
#include "wire/protection.h"

namespace mcastcoll::sim {

struct GroupOptions : Conditions {       // the model's layout follows from the other options
    std::vector<std::uint32_t> host_of;  // of each process
    std::vector<std::uint32_t> site_of;  // of each host
    std::vector<GroupSetup> groups;      // each process joins its groups in this order
    wire::JoinKey key;                   // of all groups; empty: no authentication
    wire::Security security = wire::Security::off;
    // Share of received packets preceded by a copy forged by a foreign host, with a valid checksum; a message
    // is then repeated, too.
    double forged = 0;
    double messages_doubled = 0;        // share of join messages repeated later, as in a replay
    double ends_repeated = 0;           // share of messages preceded by end messages of an earlier run
    std::size_t messages_at_once = 32;  // messages that one process may have in flight
    bool reports_failed_sends = true;   // reports failed sends to lost processes
    Nanoseconds watch_delay = Nanoseconds::from_ms(20);
    Nanoseconds calls_within;  // joins are called up to this late
    Nanoseconds join_timeout = Nanoseconds::from_ms(10'000);
    // `after`: completions of all members together. Hosts are processes here.
    std::optional<HostEvent> death, pause;
    std::optional<HostEvent> restart;   // fails, and a new process starts in its place with fresh join counts
    std::optional<HostEvent> gives_up;  // closes groups that it has not joined yet
    std::uint32_t counted = 0;  // earlier joins of the same members, in processes that have not restarted
    std::optional<std::uint32_t> never_calls, silent;  // a process that does not join; one without surveys
    std::optional<std::uint32_t>
        other_secret;  // a process with another secret: its member lists have other numbers
    Nanoseconds pause_length;
    Nanoseconds stall_timeout = kNever;                    // after which a member gives up an awaited peer
    std::optional<std::uint32_t> no_memory, no_multicast;  // lacked by this process
};

}  // namespace mcastcoll::sim
