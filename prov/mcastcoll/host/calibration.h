// From which size on which way pays.
//
// Between two processes bytes go through slots, which costs each of them a copy, or straight between their
// memories, which costs one copy, a system call, and two more looks at each other. What a byte costs either
// way depends on caches, kernel and mitigations, so it is measured when the team is made, where every member
// has a core: member 1 writes its slots, and member 0 then copies out of them in both ways, piece by piece,
// each piece once, since afterwards it lies in the wrong cache. That is 27 KiB in all, tens of microseconds;
// the least time of a few pieces counts, since whatever disturbs only adds.
//
// Where both happen to run on one core, as on a busy machine, nothing is measured, and fixed bounds hold.
//
// With more members than cores the same would measure the scheduler: there others hold. Slots then stay
// in the cache of a core that many members share, and beat the kernel's page by page copying up to hundreds
// of KiB (8 members on 2 cores, broadcast of 64 KiB: 35 us instead of 68; 4 members, allreduce of 1 MiB: 780
// instead of 1,095), but every step costs context switches (gather of 1 MiB: 150 us straight, 430 through
// slots).
#pragma once

#include <array>
#include <span>

#include "host/layout.h"
#include "host/memories.h"
#include "host/operation.h"

namespace mcastcoll::host {

// What everybody goes by, from the agreement of all.
struct Bounds {
    bool crowded = true;                      // more members than cores
    std::size_t single_copy_from = SIZE_MAX;  // a broadcast
    std::size_t both_copy_from = SIZE_MAX;    // one of which both copy a part
    std::size_t share_from = 0;               // an allreduce that is computed by shares
    std::size_t reduce_whole = 0;             // reduces of up to so many bytes are the root's work
    // The other kinds, straight between memories.
    std::array<std::size_t, kKinds> direct_from = never();

    std::size_t& from(Kind kind) { return direct_from[static_cast<std::size_t>(kind)]; }
    std::size_t from(Kind kind) const { return direct_from[static_cast<std::size_t>(kind)]; }
    static constexpr std::array<std::size_t, kKinds> never() {
        std::array<std::size_t, kKinds> all{};
        all.fill(SIZE_MAX);
        return all;
    }
};

// `slots` are the other's, in this process's addresses, freshly written by it, and at `address` in its own.
// Leaves them written over. Not measured: where they are too small, or copying fails.
CopyCosts measure_copies(const RemoteMemory& peer, std::span<std::byte> slots, std::uint64_t address);

// per_core: members that share a core, rounded up.
Thresholds thresholds(std::uint32_t members, std::uint32_t per_core, std::size_t slot_bytes,
                      const CopyCosts& costs);
Bounds bounds_of(const Agreement& agreement, std::uint32_t members, std::size_t slot_bytes);

}  // namespace mcastcoll::host
