#include "wire/gcm.h"

#include <nettle/gcm.h>

#include <vector>

#include "wire/bytes.h"

namespace mcastcoll::wire {
namespace {

class NettleGcm final : public Gcm {
  public:
    explicit NettleGcm(const Key& key) {
        static_assert(AES128_KEY_SIZE <= kKeyBytes);
        static_assert(kNonceBytes == GCM_IV_SIZE && kTagBytes == GCM_DIGEST_SIZE);
        ::gcm_aes128_set_key(&context_, raw(key));
    }

    ~NettleGcm() override {
        ::explicit_bzero(&context_, sizeof context_);
        wipe(rest_);
    }

    Tag tag(const Nonce& nonce, Bytes first, Bytes second) override {
        ::gcm_aes128_set_iv(&context_, nonce.size(), raw(nonce));
        // Only the last part of the authenticated data may end within a block.
        const std::size_t whole = first.size() / GCM_BLOCK_SIZE * GCM_BLOCK_SIZE;
        ::gcm_aes128_update(&context_, whole, raw(first));
        if (whole < first.size()) {
            rest_.assign(first.begin() + static_cast<std::ptrdiff_t>(whole), first.end());
            rest_.insert(rest_.end(), second.begin(), second.end());
            second = rest_;
        }
        ::gcm_aes128_update(&context_, second.size(), raw(second));
        return digest();
    }

    Tag encrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) override {
        begin(nonce, readable);
        if (!bytes.empty()) ::gcm_aes128_encrypt(&context_, bytes.size(), raw(out), raw(bytes));
        return digest();
    }

    Tag decrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) override {
        begin(nonce, readable);
        if (!bytes.empty()) ::gcm_aes128_decrypt(&context_, bytes.size(), raw(out), raw(bytes));
        return digest();
    }

  private:
    void begin(const Nonce& nonce, Bytes readable) {
        ::gcm_aes128_set_iv(&context_, nonce.size(), raw(nonce));
        ::gcm_aes128_update(&context_, readable.size(), raw(readable));
    }
    Tag digest() {
        Tag tag;
        ::gcm_aes128_digest(&context_, tag.size(), raw(tag.data()));
        return tag;
    }

    gcm_aes128_ctx context_;
    std::vector<std::byte> rest_;
};

}  // namespace

std::unique_ptr<Gcm> make_gcm_by_nettle(const Key& key) {
    return std::make_unique<NettleGcm>(key);
}

std::unique_ptr<Gcm> make_gcm(const Key& key) {
    auto fast = make_gcm_by_multi_buffer(key);
    return fast ? std::move(fast) : make_gcm_by_nettle(key);
}

}  // namespace mcastcoll::wire
