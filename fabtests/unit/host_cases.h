// Runs operations of a host::Team one after the other, of all kinds, and checks the resulting memory.
#pragma once

#include <vector>

#include "host/team.h"

namespace mcastcoll::test {

// Members with the result in place of the input.
enum class InPlace { none, all, odd_members };

// Runs every kind of operation with these numbers of 8-byte elements (of a vector, or of one block), with
// every root, in place and not. Returns 0, or the number of the failed check, which is printed.
int all_cases(host::Team& team, const std::vector<std::size_t>& sizes);
// Does the same for one kind.
int cases_of(host::Team& team, host::Kind kind, const std::vector<std::size_t>& sizes);

}  // namespace mcastcoll::test
