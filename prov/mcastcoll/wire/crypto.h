// Keys of groups, by Nettle: derived for each purpose. Authentication tags are in mac.h, encryption is in
// gcm.h.
#pragma once

#include <array>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/types.h"

namespace mcastcoll::wire {

// The destructor clears the bytes.
struct Key : std::array<std::byte, 32> {
    constexpr ~Key() {
        if (!std::is_constant_evaluated()) ::explicit_bzero(data(), size());
    }
};
inline constexpr std::size_t kKeyBytes = sizeof(Key);
// Overwrites the elements of a container that holds a secret; a Key overwrites itself on destruction.
template <typename Container>
void wipe(Container& secret) {
    if (!secret.empty()) ::explicit_bzero(secret.data(), secret.size() * sizeof *secret.data());
}

// HMAC-SHA-256 (RFC 2104).
Key hmac(const Key& key, Bytes bytes);

// Derives a key for one purpose by hmac(), which reveals nothing about the original key or other derived
// keys.
Key derive(const Key& from, std::string_view purpose, Bytes context = {});

// Compares in constant time. Both must have the same length.
bool are_equal(Bytes one, Bytes other);

}  // namespace mcastcoll::wire
