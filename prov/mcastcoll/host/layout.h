// Layout of a team's shared memory, and the writer of each part.
//
// All operations of a team are divided into *steps*. Every member counts the same steps, since all post the
// same operations. In a step a member may publish one message: a line in its ring of lines, with a flag word
// and up to kInlineBytes of data, and for more data a slot in its ring of slots. In each step a line or slot
// has one writer. Only the member itself writes the rest of its area, with two exceptions: member 0 writes
// the leader of the member's cluster into the record, and sleeping waiters write the bell:
//
//     header | member 0: record, left, lines[32], slots[R] | member 1: ... | ... | member 0's table
//
// A line of step s is reused in step s + 32, and a slot in step s + R, once every member's `left` counter has
// passed step s.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/collective.h"

namespace mcastcoll::host {

using Kind = CollectiveKind;

// The size of a line: two cache lines, because the adjacent-line prefetcher would otherwise fetch a neighbour
// that is being written.
inline constexpr std::size_t kLineBytes = 128;
inline constexpr std::size_t kLines = 32;
inline constexpr std::size_t kInlineBytes = kLineBytes - 16;
// Distance between two slots of a member. The gap keeps slots from starting in the same cache set.
constexpr std::size_t slot_stride(std::size_t slot_bytes) {
    return slot_bytes + 9 * kLineBytes;
}
inline constexpr std::uint32_t kMaxMembers = 1024;

// Number of a step. Never 0, so that fresh memory contains no valid line.
using Step = std::uint64_t;

// The flag word of a line: its step (the low 39 bits: a stale line could only match after 2^39 steps), the
// operation's kind, whether it is the final word of this step, and the number of bytes so far.
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
    // The operation's length; for a direct copy out of the publisher's memory, the valid prefix so far.
    std::atomic<std::uint64_t> extent;
    alignas(16) std::array<std::byte, kInlineBytes> payload;
};
static_assert(sizeof(Line) == kLineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// A member's stage in the formation of the team; only rises.
enum class Stage : std::uint32_t { absent, arriving, attached, probed, left };

// The size of the C library's CPU sets.
inline constexpr unsigned kCores = 1024;
using CoreSet = std::array<std::uint64_t, kCores / 64>;

// Describes one member to its peers. All fields except the stage are written before the stage becomes
// attached, unless noted.
struct alignas(kLineBytes) MemberRecord {
    std::atomic<Stage> stage;
    std::uint32_t pid;
    std::uint64_t start_time;
    // The address of a word in the member's private memory, and its value: a peer that reads this value at
    // this address is copying from the right process.
    std::uint64_t nonce_address;
    std::uint64_t nonce;
    CoreSet cores;                        // allowed for the member
    std::uint64_t credentials;            // own_credentials() (memories.h)
    std::atomic<std::uint32_t> can_copy;  // written before the stage becomes probed
    std::atomic<std::uint32_t> has_membarrier;
    std::uint32_t leader;         // leader of its cluster; written by member 0 before the agreement is ready
    std::uint32_t filled_on;      // the core on which the member wrote its slots, needed by the measurement
    std::uint64_t slots_address;  // in the member's own mapping
};
static_assert(sizeof(MemberRecord) == 2 * kLineBytes);

// Where the waiters of a member sleep. Written by the sleeping waiters, and by the publisher that wakes them.
struct Bell {
    std::atomic<std::uint32_t> sleepers;  // number of members in, or about to enter, the kernel's wait
    std::atomic<std::uint32_t> turn;
};

// `step` is the first step that the owner has not left. Members read `step` before they reuse lines and
// slots.
struct alignas(kLineBytes) Left {
    std::atomic<Step> step;
    std::atomic<std::uint32_t> core;  // core on which the owner last waited, plus one; 0: none yet
    Bell bell;                        // checked by its owner after each publication
};

// The area of one member, which the member's slots follow.
struct MemberArea {
    MemberRecord record;
    Left left;
    std::array<Line, kLines> lines;
};

// The areas of all members in this process's mapping.
struct Areas {
    std::byte* const first;
    const std::size_t bytes_each;
    const std::uint32_t members;

    MemberArea& operator[](std::uint32_t member) const {
        return *reinterpret_cast<MemberArea*>(first + member * bytes_each);
    }
};
// Measured cost of copying between two members.
struct CopyCosts {
    std::uint32_t measured = 0;    // 1 if measured; no bool, since the memory is writable by other processes
    double call_ns = 0;            // a single copy of no bytes
    double direct_ns_per_kib = 0;  // a single copy, beyond that
    double in_ns_per_kib = 0;      // into a slot that another process has read or written
    double out_ns_per_kib = 0;     // out of a slot that another process has written
};

// Smallest sizes in bytes for which an algorithm is used.
struct Thresholds {
    std::uint64_t single_copy_from = 0;    // broadcasts
    std::uint64_t both_copy_from = 0;      // broadcasts between two members that both copy a part
    std::uint64_t share_from = 0;          // allreduces by shares
    std::uint64_t blocks_direct_from = 0;  // gather, scatter, allgather, alltoall: blocks
    std::uint64_t reduce_direct_from = 0;  // allreduce, reduce_scatter: vectors
};

// Values shared by the team. Member 0 fills in the values when every member has probed, and then sets ready.
struct Agreement {
    std::atomic<std::uint32_t> ready;
    std::uint32_t cores;             // number of cores that at least one member may use
    std::uint32_t crowded;           // more members than these cores
    std::uint32_t single_copy;       // every member may copy from every other
    std::uint32_t reduce_by_shares;  // from share_from on; otherwise only vectors that do not fit in a slot
    std::uint32_t membarrier;        // the sleeper's barrier reaches every member
    CopyCosts costs;
    Thresholds thresholds;
};

// The failure of the team. Read often and hardly ever written, so each cache holds a shared copy.
struct alignas(kLineBytes) Failure {
    std::atomic<std::uint32_t> word;  // errno, and above it the lost member; 0: no failure
    // The rank of a lost member on another host plus one; 0: unknown. For log messages.
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

// The sizes of a segment. Members use a validated copy, because the header may be overwritten by others.
struct Shape {
    std::uint32_t members = 0, slots = 0, slot_bytes = 0;
};

inline constexpr std::uint64_t kMagic = 0x6d63617374686f73;  // "mcasthos"
inline constexpr std::uint32_t kLayout = 7;

}  // namespace mcastcoll::host
