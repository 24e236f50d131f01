// Copying straight between the memories of two processes (Linux: process_vm_readv, process_vm_writev).
//
// The kernel looks a process up by its number, and numbers are used again. So each transfer also reads the
// peer's nonce, a random word at an address that the peer told: one call reads from one process only, and
// another than the peer does not have the word there. Members that are threads of one process copy by memcpy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mcastcoll::host {

struct RemoteMemory {
    std::uint32_t pid = 0;
    std::uint64_t nonce_address = 0;
    std::uint64_t nonce = 0;
};

// 0, or the errno: ESRCH when it is not the peer (any more), EPERM when the kernel does not let us.
int copy_from(const RemoteMemory& peer, std::uint64_t address, void* to, std::size_t bytes);
// The same in the other direction; the peer must have shown within microseconds that it lives.
int copy_to(const RemoteMemory& peer, std::uint64_t address, const void* from, std::size_t bytes);
// Whether this peer's memory can be read.
bool can_copy_from(const RemoteMemory& peer);

}  // namespace mcastcoll::host
