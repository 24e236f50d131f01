// One operation of a host::Team after the other, of all kinds, and whether each left in memory what it
// should.
#pragma once

#include <vector>

#include "host/team.h"

namespace mcastcoll::test {

// Which members have their result where their input is.
enum class InPlace { nobody, everybody, odd_members };

// Every kind with so many elements of 8 bytes (of a vector, or of one block), every root, in place and not.
// 0, or what went wrong, which is printed.
int all_cases(host::Team& team, const std::vector<std::size_t>& sizes);
int cases_of(host::Team& team, host::Kind kind, const std::vector<std::size_t>& sizes);

}  // namespace mcastcoll::test
