// Pieces of memory of one size, handed out and taken back.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/region.h"

namespace mcastcoll::engine {

class Pool {
  public:
    Pool(const MemorySource& source, std::size_t pieces, std::size_t piece_bytes)
        : memory_(source, pieces * piece_bytes) {
        free_.reserve(pieces);
        for (std::size_t i = pieces; i > 0; --i) free_.push_back(memory_.get() + (i - 1) * piece_bytes);
    }

    // The one that was used last, and is still in the cache; null: all are in use.
    std::byte* take() {
        if (free_.empty()) return nullptr;
        std::byte* const piece = free_.back();
        free_.pop_back();
        return piece;
    }
    // The caller's pointer is null afterwards, as it may be before.
    void give_back(std::byte*& piece) {
        if (piece != nullptr) free_.push_back(std::exchange(piece, nullptr));
    }

  private:
    Region memory_;
    std::vector<std::byte*> free_;
};

}  // namespace mcastcoll::engine
