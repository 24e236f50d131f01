// Authentication tags of packets: UMAC-64 (RFC 4418), by Nettle: fast; without the key, a forged tag is valid
// with odds of 1 in 2^60.
#pragma once

#include <array>
#include <memory>

#include "base/types.h"
#include "wire/crypto.h"

struct umac64_ctx;

namespace mcastcoll::wire {

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
