// A pool of buffers, most of which an engine may never touch.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace mcastcoll::engine {

// The caller supplies the memory, so that untouched pages cost nothing and every page returns to the system
// when the group is closed; a heap would keep the pages.
struct MemorySource {
    // Returns memory aligned for any type; throws std::bad_alloc. May return null for 0 bytes, and then
    // give_back() is not called.
    std::byte* (*take)(std::size_t bytes) = [](std::size_t bytes) { return new std::byte[bytes]; };
    void (*give_back)(std::byte* memory, std::size_t bytes) = [](std::byte* memory, std::size_t) {
        delete[] memory;
    };
};

// Buffers of one size.
class Pool {
  public:
    Pool(const MemorySource& source, std::size_t pieces, std::size_t piece_bytes)
        : memory_(source.take(pieces * piece_bytes), {source, pieces * piece_bytes}) {
        free_.reserve(pieces);
        for (std::size_t i = pieces; i > 0; --i) free_.push_back(memory_.get() + (i - 1) * piece_bytes);
    }

    // Returns the most recently used buffer, which is likely in the cache; null if all are in use.
    std::byte* take() {
        if (free_.empty()) return nullptr;
        std::byte* const piece = free_.back();
        free_.pop_back();
        return piece;
    }
    // Accepts null; sets the caller's pointer to null.
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
