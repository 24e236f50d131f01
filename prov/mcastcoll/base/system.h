// System services for all transports: errors with the system's message, random bytes, a stable hash.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll {

// Makes an Error of `code` (an errno value, which equals FI_E*) with the text "WHAT: Connection refused".
Error system_error(int code, const std::string& what);

// Fills `out` with random bytes from the kernel.
Result<void> kernel_random(MutableBytes out);

// 64-bit hash that is identical on every host, whatever its byte order or library.
std::uint64_t stable_hash(Bytes bytes, std::uint64_t seed);

}  // namespace mcastcoll
