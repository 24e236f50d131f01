// The reading side of the head: a thread that reads each file once and makes chunks.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "base/file_descriptor.h"
#include "cp/catalogue.h"
#include "cp/chunk.h"
#include "cp/chunker.h"
#include "cp/digest.h"
#include "cp/pool.h"
#include "cp/queue.h"

namespace mcastcoll::cp {

// The start position of a file that needs no data: the target has it, with the source's size and time.
inline constexpr std::uint64_t kComplete = UINT64_MAX;

class Source {
  public:
    Source(std::shared_ptr<Pool> pool, Queue& out) : pool_(std::move(pool)), out_(out) {}
    ~Source();
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // Starts the thread, which sends this text. Call this or start_files().
    void start_text(std::string text);
    // Starts the thread, which sends the files from their start positions; `positions` has one for each
    // entry.
    void start_files(const Catalogue& catalogue, std::vector<std::uint64_t> positions);

    std::uint64_t bytes_read() const { return bytes_read_; }  // without holes
    // Errors of single sources; valid when the queue is closed.
    const std::vector<std::string>& complaints() const { return complaints_; }

  private:
    void send_text(std::string_view text);
    void send_files(const Catalogue& catalogue, const std::vector<std::uint64_t>& positions);
    static FileDescriptor open_file(const Entry& entry);
    void send_file(Chunker& chunker, const Catalogue& catalogue, std::size_t index, std::uint64_t position);
    Drop send_data(Chunker& chunker, const Entry& entry, const FileDescriptor& file, std::uint64_t position,
                   Digest& digest);
    bool is_unchanged(const Entry& entry, const FileDescriptor& file);
    void complain(const Entry& entry, const char* what);

    std::shared_ptr<Pool> pool_;
    Queue& out_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> bytes_read_{0};
    std::vector<std::string> complaints_;
    std::thread thread_;
};

// Reads `size` bytes at the offset; false if the file is shorter, or on an error.
bool read_all(int descriptor, char* to, std::size_t size, std::uint64_t offset);
// Adds the first `size` bytes of the file to the digest; false if the file is shorter, or on an error.
bool add_beginning(Digest& digest, int descriptor, std::uint64_t size);

}  // namespace mcastcoll::cp
