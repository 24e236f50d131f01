// Splits a chunk into records.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "cp/chunk.h"

namespace mcastcoll::cp {

class Unpacker {
  public:
    explicit Unpacker(std::string_view chunk);
    // Returns nothing at the end; an error if the chunk is malformed.
    Result<std::optional<Record>> next();

  private:
    std::string_view rest_;
};

}  // namespace mcastcoll::cp
