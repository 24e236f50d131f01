// An intruder at the members' service sockets, where joins begin.
#pragma once

#include "support/program.h"

namespace mcastcoll::fabtest {

// Sends garbage, well-formed hellos of joins that no member called, hellos of other versions, damaged ones,
// and (where the process may listen to the loopback) replays of genuine ones, until word `done` of the board
// is set. Counts in `thrown` and `captured`.
void throw_hellos(Board& board, std::uint64_t seed, std::size_t done, std::size_t thrown,
                  std::size_t captured);

}  // namespace mcastcoll::fabtest
