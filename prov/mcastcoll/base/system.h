// What every transport needs from the system: errors with the system's own words, randomness, a stable hash.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll {

// An Error of `code` (an errno value, which equals FI_E*) that reads "WHAT: Connection refused".
Error system_error(int code, const std::string& what);

// Fills `out` from the kernel's generator.
Result<void> kernel_random(MutableBytes out);

// Stable 64-bit hash: the same on every host, whatever its byte order or library.
std::uint64_t stable_hash(Bytes bytes, std::uint64_t seed);

}  // namespace mcastcoll
