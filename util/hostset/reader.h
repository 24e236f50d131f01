// Reads the output of a Writer. Missing fields read as 0 or empty, and then ok() is false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mcastcoll::hostset {

class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    std::uint64_t number();
    std::string_view text();
    bool ok() const { return ok_; }
    bool at_end() const { return ok_ && rest_.empty(); }

  private:
    std::string_view take(std::size_t size);

    std::string_view rest_;
    bool ok_ = true;
};

}  // namespace mcastcoll::hostset
