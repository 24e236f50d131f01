// The memory that all processes of one test case share: addresses, an out-of-band barrier, and words for the
// case's own use. Tests check collectives against the board, so the board uses nothing of libfabric.
//
// The launcher owns the board and maps it before the fork, so it lies at the same address in every process.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mcastcoll::fabtest {

inline constexpr std::size_t kMaxProcesses = 1600;
inline constexpr std::size_t kMaxAddressBytes = 128;
inline constexpr std::size_t kWords = 4096;

struct Board {
    struct Place {
        std::atomic<pid_t> pid;
        std::atomic<std::size_t> address_bytes;
        std::array<std::byte, kMaxAddressBytes> address;
        // The step the process is in, printed if the process does not end. String literals only.
        std::atomic<const char*> stage;
    };

    std::array<Place, kMaxProcesses> places;
    // Set when a process has failed: meet() then no longer waits for the other processes.
    std::atomic<bool> abandoned;
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> generation;
    std::array<std::atomic<std::uint64_t>, kWords> words;
};

// The words are shared between processes: an atomic with a lock inside would lock each process separately.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

class SharedBoard {
  public:
    SharedBoard();
    ~SharedBoard();
    SharedBoard(const SharedBoard&) = delete;
    SharedBoard& operator=(const SharedBoard&) = delete;
    Board& operator*() const { return *board_; }
    Board* operator->() const { return board_; }

  private:
    Board* board_;
};

}  // namespace mcastcoll::fabtest
