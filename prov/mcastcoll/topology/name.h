// Up to 23 printable characters, without an allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mcastcoll::topology {

class Name {
  public:
    static constexpr std::size_t kMax = 23;

    Name() = default;
    // Shortens a longer text so that it ends with "..", and replaces unprintable characters by '?'.
    explicit Name(std::string_view text);
    std::string_view view() const { return {text_.data(), size_}; }
    bool empty() const { return size_ == 0; }
    bool operator==(const Name& other) const { return view() == other.view(); }

  private:
    std::array<char, kMax> text_{};
    std::uint8_t size_ = 0;
};

}  // namespace mcastcoll::topology
