// BLAKE2b (RFC 7693) of a file's contents, as printed by b2sum; holes count as zeros.
#pragma once

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace mcastcoll::cp {

class Digest {
  public:
    Digest() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), EVP_blake2b512(), nullptr); }

    void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
    void add_zeros(std::uint64_t count) {
        static constexpr std::array<char, 65536> kZeros{};
        for (; count > 0; count -= std::min<std::uint64_t>(count, kZeros.size()))
            add({kZeros.data(), static_cast<std::size_t>(std::min<std::uint64_t>(count, kZeros.size()))});
    }
    std::string take() {
        std::string digest(EVP_MAX_MD_SIZE, '\0');
        unsigned size = 0;
        EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), &size);
        digest.resize(size);
        return digest;
    }

  private:
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace mcastcoll::cp
