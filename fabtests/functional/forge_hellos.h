// An intruder at the members' service sockets, where joins begin.
#pragma once

#include "support/program.h"

namespace mcastcoll::fabtest {

// Sends garbage, well-formed hellos (a join's first messages) of joins that no member called, hellos of other
// versions, damaged hellos, and (where the process may listen to the loopback) replays of genuine hellos,
// until word `done` of the board is set. Counts the sent hellos in word `thrown`, and the recorded ones in
// `captured`.
void throw_hellos(Board& board, std::uint64_t seed, std::size_t done, std::size_t thrown,
                  std::size_t captured);

}  // namespace mcastcoll::fabtest
