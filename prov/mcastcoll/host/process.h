// The processes of a host, and how a peer's death is detected.
#pragma once

#include <cstdint>

namespace mcastcoll::host {

// A process of this host. It may be stopped, swapped out or busy for minutes, so the kernel is queried for
// its state, never the process. Process ids are reused; the start time distinguishes the processes.
struct Process {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;  // 0: unknown
};

Process this_process();
// Returns false once the process has ended, even before its parent reaps it.
bool is_alive(std::uint32_t pid, std::uint64_t start_time);

}  // namespace mcastcoll::host
