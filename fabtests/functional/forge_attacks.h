// Attackers of a group, each with what a real one has: a host of the members' network has raw sockets, and so
// hears them and speaks in their names; another user of a member's host has what that host's kernel gives
// anybody. None has the group's secret.
#pragma once

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

// Words of the board.
inline constexpr std::size_t kListening = 8;  // the attacker hears
inline constexpr std::size_t kReady = 9;      // the members' group is there
inline constexpr std::size_t kAttacks = 10;   // so many packets of the attacker's, or what else it does
inline constexpr std::size_t kAttackMs = 11;  // in so many milliseconds
inline constexpr std::size_t kStopAttack = 12;
inline constexpr std::size_t kMembersOver = 14;
inline constexpr std::size_t kHarm = 13;  // what has gone wrong: with members, or what the attacker got

inline constexpr unsigned kAttacked = 4;  // members

// What the attacked send each other can be foreseen but for their bytes: broadcasts by rank 0 of so many
// bytes, each followed by a barrier.
inline constexpr std::size_t kForeseenBytes = 8;

struct Scene {
    Board& board;
    const Options& options;
    bool keyed;  // the members have a secret
};

// A host of the network: words of the join, from where members are.
void greet_for_the_living(const Scene& scene);  // other processes greet for a group that is there
void greet_for_what_is_to_come(const Scene& scene);
void abort_those_who_greet(const Scene& scene);
void forge_multicasts(const Scene& scene);  // of broadcasts to come
void repeat_greetings(const Scene& scene);  // genuine ones, of a join that is over
// The same with a real connection: messages to the private endpoints that begin and do not end.
void stall_messages(const Scene& scene);
// Another user of the host: messages to the private endpoints.
void tell_words_of_the_end(const Scene& scene);
void send_foreseen_data(const Scene& scene);
void send_failures(const Scene& scene);
void send_pongs(const Scene& scene);
// What the names of shared memory tell.
void watch_names(const Scene& scene);

}  // namespace mcastcoll::fabtest
