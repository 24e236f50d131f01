// A thread that sends the prefaces of connections that were not made within connect(), so that a program that
// only reads gets its answer.  It runs while there are such connections, and makes no call that the program
// could notice.
#pragma once

#include <cstdint>

namespace mcastcoll::split {

// Under Locked.  Without a thread or a descriptor to be had the program's first write has to do.
void watch(int fd, std::uint64_t cookie) noexcept;

}  // namespace mcastcoll::split
