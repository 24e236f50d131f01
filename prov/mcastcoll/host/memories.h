// The other members' own memory, which is read and written straight.
#pragma once

#include <cstdint>
#include <vector>

#include "host/rings.h"

namespace mcastcoll::host {

// Copying straight between the memories of two processes (Linux: process_vm_readv, process_vm_writev).
//
// The kernel looks a process up by its number, and numbers are used again. So each transfer also reads the
// peer's nonce, a random word at an address that the peer told: one call reads from one process only, and
// another than the peer does not have the word there. Members that are threads of one process copy by memcpy.
struct RemoteMemory {
    std::uint32_t pid = 0;
    std::uint64_t nonce_address = 0;
    std::uint64_t nonce = 0;
};

// At most kCopyAtOnce (collectives.h) in one call. 0, or the errno: ESRCH when it is not the peer (any more),
// EPERM when the kernel does not let us.
int copy_from(const RemoteMemory& peer, std::uint64_t address, void* to, std::size_t bytes);
// The same in the other direction; the peer must have shown within microseconds that it lives.
int copy_to(const RemoteMemory& peer, std::uint64_t address, const void* from, std::size_t bytes);
// Whether this peer's memory can be read.
bool can_copy_from(const RemoteMemory& peer);

// Those of a team. What goes wrong there is told to all of it.
class Memories {
  public:
    Memories(Rings& rings, std::uint64_t& copied_bytes) : rings_(rings), copied_bytes_(copied_bytes) {}

    // When everybody's card is there: who they are, and whether this member can read from all of them.
    bool meet(std::uint32_t self, std::uint32_t size, bool may_copy);
    const RemoteMemory& of(std::uint32_t member) const { return peers_[member]; }
    // False when the team has failed: the owner of a failed operation's buffer may have used it again,
    // whatever was copied since.
    bool read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes);
    // False when it fails.
    bool write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes);

  private:
    void fail(std::uint32_t member, int code);

    Rings& rings_;
    std::uint64_t& copied_bytes_;
    std::vector<RemoteMemory> peers_;
};

}  // namespace mcastcoll::host
