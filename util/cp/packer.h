// Fills a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cp/chunk.h"

namespace mcastcoll::cp {

class Packer {
  public:
    Packer(Chunk chunk, std::uint64_t number);
    // Bytes of data that fit into one more record; 0: the chunk is full.
    std::size_t room() const;
    void begin(std::uint64_t entry, std::uint64_t position);
    void end(Drop drop, std::string_view digest);
    void text(std::string_view bytes);
    // Returns space for this many bytes, at most room().
    std::span<char> data(std::uint64_t offset, std::size_t size);
    const Chunk& chunk() const { return chunk_; }

  private:
    void head(Act act, std::uint64_t number, std::uint64_t second);
    Chunk chunk_;
};

}  // namespace mcastcoll::cp
