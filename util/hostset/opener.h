// The receiving end of a Sealer: splits its output into messages and checks their tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/crypto.h"

namespace mcastcoll::hostset {

class Opener {
  public:
    Opener(const wire::Key& key, std::size_t max) : key_(key), max_(max) {}
    void allow(std::size_t max) { max_ = max; }
    void append(std::string_view bytes) { waiting_.append(bytes); }
    // Returns the next complete message, or nothing. An error is final: the message is too long, or its tag
    // is wrong.
    Result<std::optional<std::string>> next();

  private:
    wire::Key key_;
    std::size_t max_;
    std::uint64_t number_ = 0;
    std::string waiting_;
};

}  // namespace mcastcoll::hostset
