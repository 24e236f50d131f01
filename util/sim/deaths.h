// How the word of a group's end goes round: from one member that has found another dead, through shared
// memory, engines and the words that group::whom_to_tell() names, to everybody alive.
#pragma once

#include <cstdint>
#include <string>

namespace mcastcoll::sim {

// A group, a death and who finds it first, as the seed draws them. Returns who is not told, or "".
std::string run_death(std::uint64_t seed);

}  // namespace mcastcoll::sim
