// Whether a process of this host is still there. It may be stopped, swapped out or busy for minutes: only the
// kernel is asked, never the process. A number alone is not enough, since numbers are used again; the start
// time tells.
#pragma once

#include <cstdint>

namespace mcastcoll::host {

struct Process {
    std::uint32_t pid = 0;
    std::uint64_t start_time = 0;  // 0 is unknown
};

Process this_process();
// False once the process has ended, even while its parent has not asked for its status.
bool is_alive(std::uint32_t pid, std::uint64_t start_time);

}  // namespace mcastcoll::host
