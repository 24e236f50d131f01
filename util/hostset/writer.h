// Writes numbers and texts in sequence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mcastcoll::hostset {

class Writer {
  public:
    Writer& number(std::uint64_t value);
    Writer& text(std::string_view value);
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

}  // namespace mcastcoll::hostset
