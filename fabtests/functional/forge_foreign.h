// Non-members that address the members of live groups as if they took part in the join. The words of the
// board show when the members' groups exist (ready), and count the sent messages (thrown); after enough
// messages the non-member sets `done` and ends.
#pragma once

#include <cstddef>

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

struct ForeignWords {
    std::size_t ready, thrown, done;
};

// Sends hellos in place of each member but rank 0, and requests round-trip measurements and echoes: from a
// port without a member, and from the rendezvous ports that a member could use. No member may answer.
void send_hellos_as_members(Board& board, unsigned members, ForeignWords words);
// Sends echoes, in the form of version 2 of the join's messages, to every address at which the members
// listen. The echoes name addresses to which no member may connect.
void send_echoes(Board& board, const Options& options, unsigned members, ForeignWords words);

}  // namespace mcastcoll::fabtest
