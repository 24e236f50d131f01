// What a line carries when a message is to be copied straight out of, or into, its owner's memory.
#pragma once

#include <cstdint>

#include "host/layout.h"

namespace mcastcoll::host {

struct Offer {
    std::uint64_t address = 0;  // of the message: a broadcast's buffer, everybody else's input
    std::uint64_t bytes = 0;
    std::uint64_t both = 0;      // broadcast: the root has all of it and would write some, too
    std::uint64_t result = 0;    // where this member's result is going to be
    std::uint64_t in_place = 0;  // and that is where the input is
};
static_assert(sizeof(Offer) <= kInlineBytes);

}  // namespace mcastcoll::host
