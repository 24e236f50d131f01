// The trunks' key: who does not have it is a stranger, and what travels is encrypted.  libsodium does all of
// it: X25519 for a secret that only these two know and nobody who learns the key later, BLAKE2b keyed with
// the configured key to derive keys and proofs from it and from both hellos, ChaCha20-Poly1305 for what
// follows, with a counter as nonce, as each stream has keys of its own in either direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "trunk/hello.h"

namespace mcastcoll::gateway {

using trunk::Secret;

// Once, before anything else here.
Result<void> start_cryptography();
std::uint64_t random_number();
Secret random_secret();

// The configured key, of a file that only its owner may use.
Result<Secret> read_key(const std::string& path);

struct KeyPair {
    Secret public_key{}, secret_key{};
    static KeyPair make();
};

struct StreamKeys {
    Secret from_connector{}, from_acceptor{}, connector_proof{}, acceptor_proof{};
};
// Nothing if the peer's public key is no good one.
std::optional<StreamKeys> derive_keys(const Secret& key, const KeyPair& own, const Secret& peer_public,
                                      Bytes connector_hello, Bytes acceptor_hello);
// In constant time.
bool equal(const Secret& left, Bytes right);

// Records on an encrypted stream: the size of the sealed bytes (4 bytes), then these, 16 bytes longer than
// the plain ones.
inline constexpr std::size_t kRecordHeader = 4, kRecordTag = 16;

// One direction of a stream.
class Cipher {
  public:
    explicit Cipher(const Secret& key) : key_(key) {}
    // Appends the record.
    void seal(Bytes plain, std::vector<std::byte>& out);
    // Decrypts in place: gives the plain bytes inside the record, or nothing if it was forged or damaged.
    std::optional<Bytes> open(MutableBytes record);

  private:
    const Secret key_;
    std::uint64_t count_ = 0;
};

}  // namespace mcastcoll::gateway
