// Attackers of a group, each with the means of a real one: a host of the members' network has raw sockets,
// and so receives the members' packets and sends with their addresses; another user of a member's host has
// what that host's kernel gives every user. No attacker has the group's secret.
#pragma once

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

// Words of the board, the memory that all processes of the test share.
inline constexpr std::size_t kListening = 8;  // the attacker receives
inline constexpr std::size_t kReady = 9;      // the members' group exists
inline constexpr std::size_t kAttacks = 10;   // number of packets, or other actions, of the attacker
inline constexpr std::size_t kAttackMs = 11;  // duration in milliseconds
inline constexpr std::size_t kStopAttack = 12;
inline constexpr std::size_t kMembersOver = 14;
// Count of failures: at members, or secrets that the attacker obtained.
inline constexpr std::size_t kHarm = 13;

inline constexpr unsigned kAttacked = 4;  // number of members

// The traffic of the attacked members is predictable except for its bytes: broadcasts by rank 0 of
// kForeseenBytes, each followed by a barrier.
inline constexpr std::size_t kForeseenBytes = 8;

struct Scene {
    Board& board;
    const Options& options;
    bool keyed;  // the members have a secret
};

// Attacks by a host of the network. The first three send join messages with members' source addresses.
void send_hellos_for_the_living(const Scene& scene);  // hellos of other processes for an existing group
void send_hellos_for_later_joins(const Scene& scene);
void abort_senders_of_hellos(const Scene& scene);
void forge_multicasts(const Scene& scene);  // packets of future broadcasts
void repeat_hellos(const Scene& scene);     // genuine hellos of a completed join
// Messages to the private endpoints that begin and never end, over real connections.
void stall_messages(const Scene& scene);
// Attacks by another user of the host: messages to the private endpoints.
void send_outcome_messages(const Scene& scene);
void send_foreseen_data(const Scene& scene);
void send_failures(const Scene& scene);
void send_pongs(const Scene& scene);
// An attack by another user of the host: looks for secrets in the names of shared memory.
void watch_names(const Scene& scene);

}  // namespace mcastcoll::fabtest
