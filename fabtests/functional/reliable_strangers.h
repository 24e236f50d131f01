// A stranger in a group of reliable messages, which hears what the members multicast and has no key.
#pragma once

#include <netinet/in.h>

#include "support/board.h"

namespace mcastcoll::fabtest {

// Words of the board.
struct AssaultWords {
    std::size_t phase;   // what to do, as members say: 0 nothing yet, then a Phase
    std::size_t thrown;  // packets so far
};

enum class Phase : std::uint64_t {
    rare_joins = 1,  // of nobody, one in a second
    many_joins,      // a thousand in a second
    senders,         // 64 of nobody, and packets of theirs that come ahead of their turn
    forged,          // members' packets with other bytes, and again as they were
    over,
};

void assail(Board& board, const sockaddr_in& group, AssaultWords words);

}  // namespace mcastcoll::fabtest
