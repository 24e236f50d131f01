// Seals the messages of one direction of a connection. A sealed message is its length, a tag, and its bytes.
// The tag covers the message's number, too, so messages cannot be omitted, repeated or reordered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/crypto.h"

namespace mcastcoll::hostset {

class Sealer {
  public:
    static constexpr std::size_t kLengthBytes = 4, kTagBytes = 16;
    // The tag of the message with this number.
    static std::string tag_of(const wire::Key& key, std::uint64_t number, std::string_view message);

    explicit Sealer(const wire::Key& key) : key_(key) {}
    std::string seal(std::string_view message);

  private:
    wire::Key key_;
    std::uint64_t number_ = 0;
};

}  // namespace mcastcoll::hostset
