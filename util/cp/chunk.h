// The copy as a sequence of chunks, one broadcast each. A chunk has a header and whole records. The header
// has the size of the chunk two places later, so receivers have each size in advance.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mcastcoll::cp {

inline constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
inline constexpr std::size_t kAhead = 2;  // chunks whose sizes are announced in advance

using Chunk = std::shared_ptr<std::string>;

// Fields of the header.
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

// Fills a chunk.
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

// Splits a chunk into records.
class Unpacker {
  public:
    explicit Unpacker(std::string_view chunk);
    // Returns nothing at the end; an error if the chunk is malformed.
    Result<std::optional<Record>> next();

  private:
    std::string_view rest_;
};

// Reusable buffers: take() waits while `max` of them are in use.
class Pool : public std::enable_shared_from_this<Pool> {
  public:
    explicit Pool(std::size_t max) : max_(max) {}
    // Waits for a buffer, at most ten seconds; then allocates one more.
    Chunk take();
    // Ends all waits.
    void open_up();

  private:
    std::mutex mutex_;
    std::condition_variable one_is_back_;
    std::deque<std::unique_ptr<std::string>> free_;
    std::size_t max_, used_ = 0;
};

// Passes chunks from one thread to another.
class Queue {
  public:
    void put(Chunk chunk);
    void close();
    // Returns nothing when the queue is closed and empty.
    Chunk take();

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Chunk> chunks_;
    bool closed_ = false;
};

}  // namespace mcastcoll::cp
