// Cryptography of groups, by Nettle: authentication tags, and keys derived for each purpose. Encryption is in
// gcm.h.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

#include "base/types.h"

struct umac64_ctx;

namespace mcastcoll::wire {

// The destructor clears the bytes.
struct Key : std::array<std::byte, 32> {
    constexpr ~Key() {
        if (!std::is_constant_evaluated()) ::explicit_bzero(data(), size());
    }
};
inline constexpr std::size_t kKeyBytes = sizeof(Key);
// Clears another container that holds a secret.
template <typename Container>
void wipe(Container& secret) {
    if (!secret.empty()) ::explicit_bzero(secret.data(), secret.size() * sizeof *secret.data());
}

// HMAC-SHA-256 (RFC 2104).
Key hmac(const Key& key, Bytes bytes);

// Derives a key for one purpose by hmac(), which reveals nothing about the original key or further derived
// keys.
Key derive(const Key& from, std::string_view purpose, Bytes context = {});

// Compares in constant time. Both must have the same length.
bool are_equal(Bytes one, Bytes other);

// UMAC-64 (RFC 4418), for packets: fast; without the key, a forged tag is valid with odds of 1 in 2^60.
class Mac {
  public:
    static constexpr std::size_t kBytes = 8;
    using Tag = std::array<std::byte, kBytes>;

    explicit Mac(const Key& key);
    Mac(Mac&&) noexcept;
    ~Mac();

    // Tag of the concatenation of two parts. A nonce, of 1 to 16 bytes, must not repeat with other bytes.
    Tag tag(Bytes nonce, Bytes first, Bytes second);

  private:
    std::unique_ptr<umac64_ctx> context_;
};

}  // namespace mcastcoll::wire
