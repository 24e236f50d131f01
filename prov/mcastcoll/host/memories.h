// Copies between the memories of a team's members.
#pragma once

#include <cstdint>

#include "host/rings.h"

namespace mcastcoll::host {

// Copies directly between the memories of two processes (Linux: process_vm_readv, process_vm_writev).
//
// The kernel finds a process by its id, and process ids are reused. So each transfer also reads the peer's
// nonce, a random word at an address from the peer's record: one call reads from one process only, and
// another process does not have the word there. Members that are threads of one process use the same calls:
// the kernel reports an invalid address as an error, while a memcpy would end the process.
struct RemoteMemory {
    std::uint32_t pid = 0;
    std::uint64_t nonce_address = 0;
    std::uint64_t nonce = 0;
};

// Copies from the peer, at most kCopyAtOnce bytes (collectives.h) per call. Returns 0, or an errno: ESRCH if
// the process is not the peer (any more), EPERM if the kernel denies access.
int copy_from(const RemoteMemory& peer, std::uint64_t address, void* to, std::size_t bytes);
// Copies to the peer, with the same limit and errors. The peer's nonce is checked before the write only, so
// the caller must have seen within the last microseconds that the peer is alive.
int copy_to(const RemoteMemory& peer, std::uint64_t address, const void* from, std::size_t bytes);
// Whether this peer's memory can be read.
bool can_copy_from(const RemoteMemory& peer);
// A word that is equal for processes which the kernel treats alike when one reads another's memory: a hash of
// users, groups, capabilities, namespaces and security label. 0: not conclusive, as under Yama, which checks
// ancestry.
std::uint64_t own_credentials();

// The memories of a team's members. An error poisons the whole team.
class Memories {
  public:
    // Largest team in which each member tests every peer, which costs less than own_credentials().
    static constexpr std::uint32_t kMaxAllMet = 64;

    explicit Memories(Rings& rings) : rings_(rings) {}

    // Whether this member can read from every member. The members' records must be complete. In large teams,
    // tests the peers 1, 2, 4 ... places away if this member's credentials equal member 0's, and returns
    // false otherwise. Without conclusive credentials, tests every peer.
    bool can_read_all(std::uint32_t self, std::uint32_t size) const;
    RemoteMemory of(std::uint32_t member) const {
        const MemberRecord& record = rings_.record(member);
        return {record.pid, record.nonce_address, record.nonce};
    }
    // Returns false if the team has failed: the owner of a failed operation's buffer may have reused it, so
    // the copied data are not reliable.
    bool read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes);
    // Returns false on failure.
    bool write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes);

  private:
    void fail(std::uint32_t member, int code);

    Rings& rings_;
};

}  // namespace mcastcoll::host
