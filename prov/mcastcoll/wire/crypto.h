// The cryptography of groups, by Nettle: tags that only who has the key can make, and keys for each purpose,
// made of the one that there is. Encryption is in gcm.h.
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
// Clears another container with a secret.
template <typename Container>
void wipe(Container& secret) {
    if (!secret.empty()) ::explicit_bzero(secret.data(), secret.size() * sizeof *secret.data());
}

// HMAC-SHA-256 (RFC 2104).
Key hmac(const Key& key, Bytes bytes);

// Another key, for one purpose: by hmac(), so that it tells nothing of the one it comes from, nor of others.
Key derive(const Key& from, std::string_view purpose, Bytes context = {});

// In a time that does not tell where they differ. Both have as many bytes.
bool are_equal(Bytes one, Bytes other);

// UMAC-64 (RFC 4418), for packets: fast, and who has no key makes a right tag with odds of 1 in 2^60.
class Mac {
  public:
    static constexpr std::size_t kBytes = 8;
    using Tag = std::array<std::byte, kBytes>;

    explicit Mac(const Key& key);
    Mac(Mac&&) noexcept;
    ~Mac();

    // Of two pieces, one behind the other. No nonce, of 1 to 16 bytes, may come again with other bytes.
    Tag tag(Bytes nonce, Bytes first, Bytes second);

  private:
    std::unique_ptr<umac64_ctx> context_;
};

}  // namespace mcastcoll::wire
