// AES-128-GCM (NIST SP 800-38D), which encrypts and authenticates, and AES-128-GMAC, which only
// authenticates.
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

    // GMAC of the concatenation of two parts; faster if the second is empty or the first consists of whole
    // blocks of 16 bytes. Under one key no nonce may repeat, in any of these functions.
    virtual Tag tag(const Nonce& nonce, Bytes first, Bytes second) = 0;
    // Encrypts `bytes` to `out`, which may be the same place. The tag authenticates the encrypted bytes and
    // `readable`, which is not encrypted.
    virtual Tag encrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) = 0;
    // Returns the expected tag: the caller must compare the tag before using `out`.
    virtual Tag decrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) = 0;
};

// Uses the first 16 bytes of the key.
std::unique_ptr<Gcm> make_gcm_by_nettle(const Key& key);
// By Intel's multi-buffer library; null in a build without the library, and on an unsupported processor.
std::unique_ptr<Gcm> make_gcm_by_multi_buffer(const Key& key);
// The faster of the available implementations.
std::unique_ptr<Gcm> make_gcm(const Key& key);

// Whether a tag of make_gcm() takes less time than a tag of UMAC-64: half as long with AVX-512, twice as long
// without.
bool gmac_is_fast();

}  // namespace mcastcoll::wire
