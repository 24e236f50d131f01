// What lies where in the shared memory of a team, and who may write it.
//
// All operations of a team are cut into *steps*, numbered by one clock that every member counts alike, since
// all post the same operations. In a step a member may publish one message: a line in its ring of lines,
// which says what there is, with up to kInlineBytes of it; and, for more, a slot in its ring of slots. A line
// and a slot are written by one member only in any one step, and everything else in a member's area by that
// member only:
//
//     header | member 0: card, left, lines[32], slots[R] | member 1: ... | ... | member 0's table
//
// A member's areas for step s are used again for step s + 32 (lines) or s + R (slots), once everybody's
// `left` says that he has left step s for good.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::host {

using Kind = CollectiveKind;

// Two lines of the cache: the adjacent-line prefetcher would otherwise fetch a neighbour that is being
// written.
inline constexpr std::size_t kLineBytes = 128;
inline constexpr std::size_t kLines = 32;
inline constexpr std::size_t kInlineBytes = kLineBytes - 16;
// From one slot of a member to the next. Without the gap all would begin in one set of the cache.
constexpr std::size_t slot_stride(std::size_t slot_bytes) {
    return slot_bytes + 9 * kLineBytes;
}
inline constexpr std::uint32_t kMaxMembers = 1024;

// Number of a step. Never 0, so that fresh memory announces nothing.
using Step = std::uint64_t;

// What a line's word says: its step (the low 39 bits of it: a stale line of just that number would have to be
// 2^39 steps old), the kind of its operation, whether more follows in this step, and how many bytes there are
// by now.
struct Word {
    static constexpr unsigned kCountBits = 20;
    static constexpr std::uint64_t kMaxCount = (std::uint64_t{1} << kCountBits) - 1;

    static constexpr std::uint64_t of(Step step, unsigned kind, bool final, std::uint64_t count) {
        return step << 25 | std::uint64_t{kind} << 21 | std::uint64_t{final} << 20 | count;
    }
    static constexpr bool is_of(std::uint64_t word, Step step) { return word >> 25 == (step << 25) >> 25; }
    static constexpr unsigned kind(std::uint64_t word) { return static_cast<unsigned>(word >> 21 & 15); }
    static constexpr bool final(std::uint64_t word) { return (word >> 20 & 1) != 0; }
    static constexpr std::uint64_t count(std::uint64_t word) { return word & kMaxCount; }
};

struct alignas(kLineBytes) Line {
    std::atomic<std::uint64_t> word;
    // The operation's length; for a copy straight out of the publisher's memory the prefix that is there by
    // now.
    std::atomic<std::uint64_t> extent;
    alignas(16) std::array<std::byte, kInlineBytes> payload;
};
static_assert(sizeof(Line) == kLineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// A member's stage in the making of the team; only ever rises.
enum class Stage : std::uint32_t { absent, arriving, attached, probed, left };

// As many as the C library's sets have.
inline constexpr unsigned kCores = 1024;
using CoreSet = std::array<std::uint64_t, kCores / 64>;

// Who a member is. Everything but the stage is written before the stage says attached.
struct alignas(kLineBytes) Card {
    std::atomic<Stage> stage;
    std::uint32_t pid;
    std::uint64_t start_time;
    // A word in the member's private memory, and what it says: who can read it, and finds that, may copy from
    // there.
    std::uint64_t nonce_address;
    std::uint64_t nonce;
    CoreSet cores;                        // that the member may run on
    std::uint64_t credentials;            // own_credentials() (context.h)
    std::atomic<std::uint32_t> can_copy;  // written before the stage says probed
    std::atomic<std::uint32_t> has_membarrier;
    std::uint32_t leader;         // of its cluster; written by member 0 before the agreement is ready
    std::uint32_t filled_on;      // the core on which it has written its slots, as a measurement needs
    std::uint64_t slots_address;  // where it sees them
};
static_assert(sizeof(Card) == 2 * kLineBytes);

// What those change who sleep until a member publishes something, and that member in order to wake them.
struct Bell {
    std::atomic<std::uint32_t> sleepers;  // that wait for it in the kernel, or are about to
    std::atomic<std::uint32_t> turn;
};

// The first step that its owner has not left. Read by who wants to use lines and slots again.
struct alignas(kLineBytes) Left {
    std::atomic<Step> step;
    std::atomic<std::uint32_t> core;  // one more than that its owner has last waited on; 0: not yet
    Bell bell;                        // its owner looks at it after each publication
};

// Followed by the member's slots.
struct MemberArea {
    Card card;
    Left left;
    std::array<Line, kLines> lines;
};

// Of all members, in this process's addresses.
struct Areas {
    std::byte* const first;
    const std::size_t bytes_each;
    const std::uint32_t members;

    MemberArea& operator[](std::uint32_t member) const {
        return *reinterpret_cast<MemberArea*>(first + member * bytes_each);
    }
};
// What copying between two members takes.
struct CopyCosts {
    std::uint32_t measured = 0;    // 1: it was; no bool, since it lies in memory that others write
    double call_ns = 0;            // a single copy of nothing
    double direct_ns_per_kib = 0;  // a single copy, after that
    double in_ns_per_kib = 0;      // into a slot that another has read or written
    double out_ns_per_kib = 0;     // out of a slot that another has written
};

// From so many bytes on.
struct Thresholds {
    std::uint64_t single_copy_from = 0;    // broadcasts
    std::uint64_t both_copy_from = 0;      // broadcasts between two, of which both copy a part
    std::uint64_t share_from = 0;          // allreduces that are computed by shares
    std::uint64_t blocks_direct_from = 0;  // gather, scatter, allgather, alltoall: blocks
    std::uint64_t reduce_direct_from = 0;  // allreduce, reduce_scatter: vectors
};

// What everybody must agree on. Member 0 fills it in when all have probed, and then says so.
struct Agreement {
    std::atomic<std::uint32_t> ready;
    std::uint32_t cores;             // that any member may run on
    std::uint32_t crowded;           // more members than cores for them
    std::uint32_t single_copy;       // everybody may copy from everybody
    std::uint32_t reduce_by_shares;  // from share_from on, too; else what does not fit in a slot
    std::uint32_t membarrier;        // everybody is reached by the sleeper's barrier
    CopyCosts costs;
    Thresholds thresholds;
};

// Read by everybody now and then, and hardly ever written: in every cache, shared.
struct alignas(kLineBytes) Failure {
    std::atomic<std::uint32_t> word;  // errno that poisons the team, and above it whose fault; 0 is none
    // One more than the rank of the member that is lost, where it is on another host; 0: not known. For
    // people.
    std::atomic<std::uint32_t> far_rank;
};

struct alignas(4096) Header {
    std::atomic<std::uint64_t> magic;
    std::uint64_t key;
    std::uint32_t layout;
    std::uint32_t size;
    std::uint32_t slots;
    std::uint32_t slot_bytes;
    alignas(kLineBytes) Agreement agreement;
    Failure failure;
};

// How large everything is. The header says it, which others may write over: who has looked at it goes by a
// copy.
struct Shape {
    std::uint32_t members = 0, slots = 0, slot_bytes = 0;
};

inline constexpr std::uint64_t kMagic = 0x6d63617374686f73;  // "mcasthos"
inline constexpr std::uint32_t kLayout = 7;

}  // namespace mcastcoll::host
