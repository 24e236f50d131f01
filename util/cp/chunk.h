// The copy as a sequence of chunks, one broadcast each. A chunk has a header and whole records. The header
// has the size of the chunk two places later, so receivers have each size in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mcastcoll::cp {

inline constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
inline constexpr std::size_t kAhead = 2;  // chunks whose sizes are announced in advance

inline constexpr std::size_t kHeaderBytes = 16;
// The head of a record: its act and two numbers. The record's bytes follow.
inline constexpr std::size_t kHeadBytes = 1 + 8 + 8;

using Chunk = std::shared_ptr<std::string>;

// Read and write a number in a header or in a record's head.
std::uint64_t number_at(std::string_view bytes, std::size_t offset);
void put_number(std::string& bytes, std::size_t offset, std::uint64_t number);
// Read and write the fields of a chunk's header: its number, and the size of the chunk two places later.
std::uint64_t number_of(const std::string& chunk);
std::uint64_t size_ahead(const std::string& chunk);  // 0: no such chunk
void set_size_ahead(std::string& chunk, std::uint64_t size);

enum class Act : std::uint8_t { text, begin, data, end };

struct Record {
    Act act = Act::text;
    std::uint64_t number = 0;    // begin: the entry; data: the offset; end: 0, or the reason to drop the file
    std::uint64_t position = 0;  // begin: where data begins
    std::string_view bytes;      // text; data; end: the digest
};

enum class Drop : std::uint64_t { no, changed, unreadable };

}  // namespace mcastcoll::cp
