// By Intel's multi-buffer library for IPsec, used with one packet at a time.
#include <intel-ipsec-mb.h>

#include "wire/bytes.h"
#include "wire/gcm.h"

namespace mcastcoll::wire {
namespace {

// Functions selected for the processor, shared by the process and constant after initialisation.
const IMB_MGR* functions() {
    static IMB_MGR* const manager = [] {
        IMB_MGR* made = alloc_mb_mgr(0);
        IMB_ARCH chosen;
        if (made != nullptr) init_mb_mgr_auto(made, &chosen);
        if (made == nullptr || imb_get_errno(made) == 0) return made;
        free_mb_mgr(made);
        return static_cast<IMB_MGR*>(nullptr);
    }();
    return manager;
}

class MultiBufferGcm final : public Gcm {
  public:
    MultiBufferGcm(const IMB_MGR& by, const Key& key) : by_(by) { by_.gcm128_pre(key.data(), &key_); }

    ~MultiBufferGcm() override {
        ::explicit_bzero(&key_, sizeof key_);
        ::explicit_bzero(&context_, sizeof context_);
    }

    Tag tag(const Nonce& nonce, Bytes first, Bytes second) override {
        if (second.empty()) return run(by_.gcm128_enc, nonce, first, {}, nullptr);
        by_.gmac128_init(&key_, &context_, raw(nonce), nonce.size());
        if (!first.empty()) by_.gmac128_update(&key_, &context_, raw(first), first.size());
        by_.gmac128_update(&key_, &context_, raw(second), second.size());
        Tag tag;
        by_.gmac128_finalize(&key_, &context_, raw(tag.data()), tag.size());
        return tag;
    }

    Tag encrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) override {
        return run(by_.gcm128_enc, nonce, readable, bytes, out);
    }

    Tag decrypt(const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) override {
        return run(by_.gcm128_dec, nonce, readable, bytes, out);
    }

  private:
    Tag run(aes_gcm_enc_dec_t function, const Nonce& nonce, Bytes readable, Bytes bytes, std::byte* out) {
        Tag tag;
        function(&key_, &context_, raw(out), raw(bytes), bytes.size(), raw(nonce), raw(readable),
                 readable.size(), raw(tag.data()), tag.size());
        return tag;
    }

    const IMB_MGR& by_;
    alignas(64) gcm_key_data key_;
    gcm_context_data context_;
};

}  // namespace

std::unique_ptr<Gcm> make_gcm_by_multi_buffer(const Key& key) {
    const IMB_MGR* const by = functions();
    if (by == nullptr) return {};
    return std::make_unique<MultiBufferGcm>(*by, key);
}

// GMAC's work is multiplication, by VPCLMULQDQ. Clang before 19 has no name for VAES, which every processor
// with VPCLMULQDQ has too.
bool gmac_is_fast() {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("vpclmulqdq") != 0;
}

}  // namespace mcastcoll::wire
