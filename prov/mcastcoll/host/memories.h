// Memories: the other members' own memory, which is read and written straight. What goes wrong there is told
// to the whole team.
#pragma once

#include <vector>

#include "host/rings.h"
#include "host/single_copy.h"

namespace mcastcoll::host {

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
