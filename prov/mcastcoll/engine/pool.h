// Memory of which an engine may never touch the most.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace mcastcoll::engine {

// Where it comes from is the caller's to say, so that pages which nobody wrote to cost nothing and all go
// back when the group is closed; a heap keeps them.
struct MemorySource {
    // Aligned for anything; throws std::bad_alloc. Of 0 bytes: null, perhaps, which does not come back.
    std::byte* (*take)(std::size_t bytes) = [](std::size_t bytes) { return new std::byte[bytes]; };
    void (*give_back)(std::byte* memory, std::size_t bytes) = [](std::byte* memory, std::size_t) {
        delete[] memory;
    };
};

// Pieces of one size, handed out and taken back.
class Pool {
  public:
    Pool(const MemorySource& source, std::size_t pieces, std::size_t piece_bytes)
        : memory_(source.take(pieces * piece_bytes), {source, pieces * piece_bytes}) {
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
    struct Return {
        MemorySource source;
        std::size_t bytes;
        void operator()(std::byte* memory) const { source.give_back(memory, bytes); }
    };
    std::unique_ptr<std::byte[], Return> memory_;
    std::vector<std::byte*> free_;
};

}  // namespace mcastcoll::engine
