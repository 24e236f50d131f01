// Strangers who speak to members of live groups as if they were of the join. The words of the board say when
// the members' groups are there (ready), and count what has been sent (thrown); the stranger ends when it has
// sent enough, and sets `done`.
#pragma once

#include <cstddef>

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

struct StrangerWords {
    std::size_t ready, thrown, done;
};

// Greets in place of each member but rank 0, and wants round trips measured and echoes answered: from a port
// that is no member's, and from those where a member could be. Nobody may answer.
void greet_as_members(Board& board, unsigned members, StrangerWords words);
// Sends echoes to everything that the members listen at, as the join's messages were in version 2. They name
// addresses where nobody may connect to.
void send_echoes(Board& board, const Options& options, unsigned members, StrangerWords words);

}  // namespace mcastcoll::fabtest
