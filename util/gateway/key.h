// The trunks' key, which all gateways have and nobody else: TLS (tls.h) proves that a peer has it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/types.h"

namespace mcastcoll::gateway {

using Secret = std::array<std::byte, 32>;

// Never 0.
std::uint64_t random_number();

// The configured key, of a file that only its owner may use.
Result<Secret> read_key(const std::string& path);

// What two gateways share that know the key, for one purpose: none of these tells of another.
Secret derive_key(const Secret& key, const std::string& purpose);

}  // namespace mcastcoll::gateway
