#include "core/secret.h"

#include <nettle/curve25519.h>
#include <nettle/gcm.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

static const char kName[] = "mcastcoll: the secret of an MPI group, 1";

static bool draw(void* bytes, size_t count) {
    return (ssize_t)count == getrandom(bytes, count, 0);
}

bool mcc_draw_secret(MccSecret* secret) {
    return draw(secret, sizeof(*secret));
}

bool mcc_draw_key_pair(MccKeyPair* pair) {
    if (!draw(pair->private_key, sizeof(pair->private_key))) return false;
    curve25519_mul_g(pair->public_key.bytes, pair->private_key);
    return true;
}

// Returns whether all bytes are zero. X25519 returns zero for every private key if the public key has a small
// order, as no key of an honest process has.
static bool is_zero(const uint8_t* bytes, size_t count) {
    uint8_t any = 0;
    for (size_t i = 0; i < count; ++i) any |= bytes[i];
    return 0 == any;
}

bool mcc_edge_key(const MccKeyPair* own, const MccPublicKey* other, MccEdgeKey* edge) {
    struct {
        uint8_t shared[CURVE25519_SIZE];
        MccPublicKey lower, higher;
    } from;
    const bool own_is_lower = memcmp(&own->public_key, other, sizeof(*other)) < 0;
    from.lower = own_is_lower ? own->public_key : *other;
    from.higher = own_is_lower ? *other : own->public_key;
    curve25519_mul(from.shared, own->private_key, other->bytes);
    const bool good = !is_zero(from.shared, sizeof(from.shared));
    struct hmac_sha256_ctx hmac;
    hmac_sha256_set_key(&hmac, sizeof(kName), (const uint8_t*)kName);
    hmac_sha256_update(&hmac, sizeof(from), (const uint8_t*)&from);
    hmac_sha256_digest(&hmac, sizeof(edge->bytes), edge->bytes);
    explicit_bzero(&from, sizeof(from));
    explicit_bzero(&hmac, sizeof(hmac));
    return good;
}

// Derives the AES key and the nonce for one secret. The salt makes both unique.
static void set_key(struct gcm_aes128_ctx* gcm, const MccEdgeKey* edge, const void* context,
                    size_t context_bytes, const uint8_t* salt, size_t salt_bytes) {
    struct {
        uint8_t key[AES128_KEY_SIZE], nonce[GCM_IV_SIZE];
    } drawn;
    // HKDF-Expand with one block: the first 28 bytes of HMAC(edge key, info || 1).
    const uint8_t kFirstBlock = 1;
    struct hmac_sha256_ctx hmac;
    hmac_sha256_set_key(&hmac, sizeof(edge->bytes), edge->bytes);
    hmac_sha256_update(&hmac, salt_bytes, salt);
    hmac_sha256_update(&hmac, context_bytes, context);
    hmac_sha256_update(&hmac, sizeof(kFirstBlock), &kFirstBlock);
    hmac_sha256_digest(&hmac, sizeof(drawn), (uint8_t*)&drawn);
    gcm_aes128_set_key(gcm, drawn.key);
    gcm_aes128_set_iv(gcm, sizeof(drawn.nonce), drawn.nonce);
    explicit_bzero(&drawn, sizeof(drawn));
    explicit_bzero(&hmac, sizeof(hmac));
}

bool mcc_wrap_secret(const MccEdgeKey* edge, const void* context, size_t context_bytes,
                     const MccSecret* secret, MccWrappedSecret* wrapped) {
    struct gcm_aes128_ctx gcm;
    memset(wrapped, 0, sizeof(*wrapped));
    if (!draw(wrapped->salt, sizeof(wrapped->salt))) return false;
    set_key(&gcm, edge, context, context_bytes, wrapped->salt, sizeof(wrapped->salt));
    gcm_aes128_encrypt(&gcm, sizeof(secret->bytes), wrapped->encrypted, secret->bytes);
    gcm_aes128_digest(&gcm, sizeof(wrapped->tag), wrapped->tag);
    explicit_bzero(&gcm, sizeof(gcm));
    return true;
}

bool mcc_unwrap_secret(const MccEdgeKey* edge, const void* context, size_t context_bytes,
                       const MccWrappedSecret* wrapped, MccSecret* secret) {
    struct gcm_aes128_ctx gcm;
    uint8_t tag[sizeof(wrapped->tag)];
    set_key(&gcm, edge, context, context_bytes, wrapped->salt, sizeof(wrapped->salt));
    gcm_aes128_decrypt(&gcm, sizeof(secret->bytes), secret->bytes, wrapped->encrypted);
    gcm_aes128_digest(&gcm, sizeof(tag), tag);
    explicit_bzero(&gcm, sizeof(gcm));
    if (memeql_sec(tag, wrapped->tag, sizeof(tag))) return true;
    explicit_bzero(secret, sizeof(*secret));
    return false;
}
