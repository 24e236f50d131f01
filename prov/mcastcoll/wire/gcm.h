// AES-128-GCM (NIST SP 800-38D), which encrypts and proves, and AES-128-GMAC, which is what of it proves
// alone.
#pragma once

#include <memory>

#include "wire/crypto.h"

namespace mcastcoll::wire {

class Gcm {
  public:
    static constexpr std::size_t kTagBytes = 16, kNonceBytes = 12;
    using Tag = std::array<std::byte, kTagBytes>;
    using Nonce = std::array<std::byte, kNonceBytes>;

    virtual ~Gcm() = default;

    // GMAC of two pieces, one behind the other. It takes less time when the second is empty, or the first is
    // whole blocks of 16 bytes. Under one key no nonce may come again, here or below.
    virtual Tag tag(const Nonce& nonce, Bytes first, Bytes second) = 0;
    // Writes as many bytes as there are to out, which may be where they are; the tag is of them and of what
    // stays readable.
    virtual Tag encrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) = 0;
    // The tag is the right one: the caller is to compare it before it looks at what is in out.
    virtual Tag decrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) = 0;
};

// The key is its first 16 bytes.
std::unique_ptr<Gcm> make_gcm_by_nettle(const Key& key);
// By Intel's multi-buffer library; null in a build without it, and on a processor that it cannot use.
std::unique_ptr<Gcm> make_gcm_by_multi_buffer(const Key& key);
// The faster of those that there are.
std::unique_ptr<Gcm> make_gcm(const Key& key);

// Whether make_gcm()'s tags take less time than UMAC-64's: half of it with AVX-512, twice of it without.
bool gmac_is_fast();

}  // namespace mcastcoll::wire
