// A non-member in a group of reliable messages, which receives the members' multicasts and has no key.
#pragma once

#include <netinet/in.h>

#include "support/board.h"

namespace mcastcoll::fabtest {

// Numbers of words of the board, the memory that all processes of the test share.
struct AssaultWords {
    std::size_t phase;   // the current Phase, set by members; 0: none yet
    std::size_t thrown;  // packets so far
};

enum class Phase : std::uint64_t {
    rare_joins = 1,  // joins of unknown senders, one per second
    many_joins,      // a thousand joins of unknown senders per second
    senders,         // 64 unknown senders, and packets of theirs ahead of their sequence
    forged,          // members' packets with other bytes, and replayed unchanged
    over,
};

void assail(Board& board, const sockaddr_in& group, AssaultWords words);

}  // namespace mcastcoll::fabtest
