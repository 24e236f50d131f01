// Region: a stretch of memory of which an engine may never touch the most. The caller says where it comes
// from, so that pages which nobody wrote to cost nothing and all go back when the group is closed; a heap
// keeps them.
#pragma once

#include <cstddef>
#include <utility>

namespace mcastcoll::engine {

struct MemorySource {
    // Aligned for anything; throws std::bad_alloc. Of 0 bytes: null, perhaps, which give_back() takes.
    std::byte* (*take)(std::size_t bytes) = [](std::size_t bytes) { return new std::byte[bytes]; };
    void (*give_back)(std::byte* memory, std::size_t bytes) = [](std::byte* memory, std::size_t) {
        delete[] memory;
    };
};

class Region {
  public:
    Region(const MemorySource& source, std::size_t bytes)
        : source_(source), bytes_(bytes), memory_(source.take(bytes)) {}
    Region(Region&& other) noexcept
        : source_(other.source_), bytes_(other.bytes_), memory_(std::exchange(other.memory_, nullptr)) {}
    Region& operator=(Region&&) = delete;
    ~Region() { source_.give_back(memory_, bytes_); }
    std::byte* get() const { return memory_; }

  private:
    MemorySource source_;
    std::size_t bytes_;
    std::byte* memory_;
};

}  // namespace mcastcoll::engine
