// Thresholds between the algorithms, by message size.
//
// Between two processes data goes through slots, at the cost of one copy in each process, or directly between
// their memories, at the cost of one copy, a system call, and two more polls of each other's line. The cost
// per byte depends on caches, kernel and mitigations, so it is measured when the team is made, if every
// member has a core: member 1 writes its slots, and member 0 then copies from them in both ways, piece by
// piece, each piece once, since it is in the wrong cache afterwards. This takes 27 KiB in all and tens of
// microseconds. The shortest time of a few pieces counts, since disturbances only add time.
//
// If both members run on one core, as on a busy machine, there is no measurement and fixed thresholds hold.
// With more members than cores other fixed thresholds hold, since a measurement would measure the scheduler.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "host/formation.h"

namespace mcastcoll::host {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kSmall = kKiB, kLarge = 4 * kKiB;
constexpr std::size_t kPieces = 3;
static_assert(kMeasuredBytes == kPieces * (kSmall + 2 * kLarge));
// From these sizes on slots gain nothing: the slots stay in the caches, but the data copied through them does
// not. For blocks, which are not combined, slots pay for longer.
constexpr std::size_t kLong = 4096 * kKiB, kLongBlock = 4 * kLong;
// A cache line from one core to another and back: the cost of two more polls.
constexpr double kMeeting_ns = 400;
// The least gain per byte of a broadcast without slots: the root writes slots that readers have just read,
// and readers wait for it (64 KiB: 7 us instead of 31), which the copies of a single process do not show.
constexpr double kMinGain_ns = 0.25;

// The shortest time of a few pieces, starting at `offset`.
template <class Copy>
double min_ns(std::size_t& offset, std::size_t bytes, const Copy& copy) {
    std::int64_t min = INT64_MAX;
    for (std::size_t i = 0; i < kPieces; ++i, offset += bytes) {
        const Nanoseconds begin = monotonic_now();
        if (!copy(offset, bytes)) return -1;
        min = std::min(min, (monotonic_now() - begin).value);
    }
    return static_cast<double>(min);
}

double per_kib(double ns, std::size_t bytes) {
    return ns * static_cast<double>(kKiB) / static_cast<double>(bytes);
}

// Whether slots are so much cheaper that a broadcast is faster through slots although root and reader wait
// for each other. On two cores with 15 ns per KiB in, 30 out and 85 directly, broadcasts of 8 KiB to 1 MiB
// between two members took a third to a sixth of a single copy's time.
bool slots_are_far_ahead(const CopyCosts& costs) {
    return 3 * std::max(costs.in_ns_per_kib, costs.out_ns_per_kib) < 2 * costs.direct_ns_per_kib;
}

// The size from which a single copy is faster, with both costs linear in the size. Unlimited if the single
// copy costs more per byte.
std::size_t crossing(const CopyCosts& costs, std::size_t slot_bytes, double meetings) {
    const double slower = std::max(costs.in_ns_per_kib, costs.out_ns_per_kib);
    const double faster = std::min(costs.in_ns_per_kib, costs.out_ns_per_kib);
    const double gain = slower - costs.direct_ns_per_kib;
    if (gain <= 0) return SIZE_MAX;
    // With slots the faster copy is a slot ahead, and its remaining time is hidden.
    const double first_slot = faster * static_cast<double>(slot_bytes) / kKiB;
    const double lost = costs.call_ns + meetings * kMeeting_ns - first_slot;
    return lost <= 0 ? 0 : static_cast<std::size_t>(std::min(lost / gain, 1e9) * kKiB);
}

}  // namespace

// Larger slots mean fewer steps for a long message, and fewer context switches on a shared core (two cores,
// allreduce of 1 MiB among 16: 3.4 ms with 6 KiB, 1.0 with 32, 0.9 with 64). With eight slots of 8 KiB single
// copies were faster from 64 to 256 KiB on. But there may be many teams, and memory may be as little as a
// container's 64 MiB: a team takes a small part of the spare memory (Segment::spare), up to a fixed limit.
std::uint32_t slot_bytes_for(std::uint32_t members, std::uint32_t slots, std::uint64_t spare_bytes) {
    constexpr std::uint64_t kMax = std::uint64_t{16} << 20, kShareOfSpare = 32;
    constexpr std::uint32_t kLargest = 32 * kKiB, kMin = 4 * kKiB;
    const std::uint64_t max = std::min(kMax, spare_bytes / kShareOfSpare);
    std::uint32_t bytes = kLargest;
    while (bytes > kMin && std::uint64_t{bytes} * slots * members > max) bytes /= 2;
    return bytes;
}

CopyCosts measure_copies(const RemoteMemory& peer, std::span<std::byte> slots, std::uint64_t address) {
    CopyCosts costs;
    if (slots.size() < kMeasuredBytes) return costs;
    std::array<std::byte, kLarge> own;
    std::memset(own.data(), 1, own.size());
    std::size_t offset = 0;
    const auto straight = [&](std::size_t at, std::size_t bytes) {
        return copy_from(peer, address + at, own.data(), bytes) == 0;
    };
    const double small_ns = min_ns(offset, kSmall, straight);
    const double large_ns = min_ns(offset, kLarge, straight);
    const double out_ns = min_ns(offset, kLarge, [&](std::size_t at, std::size_t bytes) {
        std::memcpy(own.data(), slots.data() + at, bytes);
        return true;
    });
    if (small_ns < 0 || large_ns < 0) return costs;
    // Into the pieces read by the single copies: both processes have these bytes in cache, like a slot's
    // writer and reader.
    offset = kPieces * kSmall;
    const double in_ns = min_ns(offset, kLarge, [&](std::size_t at, std::size_t bytes) {
        std::memcpy(slots.data() + at, own.data(), bytes);
        return true;
    });
    costs.measured = 1;
    costs.direct_ns_per_kib = per_kib(std::max(0.0, large_ns - small_ns), kLarge - kSmall);
    costs.call_ns = std::max(0.0, small_ns - costs.direct_ns_per_kib * kSmall / kKiB);
    costs.out_ns_per_kib = per_kib(out_ns, kLarge);
    costs.in_ns_per_kib = per_kib(in_ns, kLarge);
    return costs;
}

// The thresholds are clamped, because a busy machine may yield useless values.
Thresholds thresholds(std::uint32_t members, bool crowded, std::size_t slot_bytes, const CopyCosts& costs) {
    Thresholds found;
    found.single_copy_from = 16 * kKiB;
    found.blocks_direct_from = found.reduce_direct_from = 128 * kKiB;
    if (crowded) {
        // Slots stay in the cache of a core for all its members, and the kernel's copy pins page by page. On
        // two cores direct copies took 3.6 times as long for broadcasts of 64 KiB to 1 MiB among 4 members,
        // 1.5 to 2.5 times for allgathers and alltoalls of 256 KiB to 8 MiB among 4 to 16, as long for
        // allreduces of 4 MiB, and 0.75 times for those of 8 MiB among 8.
        found.single_copy_from = found.reduce_direct_from = kLong;
        found.blocks_direct_from = kLongBlock;
    } else if (costs.measured != 0) {
        // The root of a broadcast waits for one more poll; members of a block exchange wait for every offer
        // first, and for every reader at the end.
        const auto max = static_cast<std::size_t>(costs.call_ns / kMinGain_ns);
        found.single_copy_from =
            slots_are_far_ahead(costs)
                ? kLong
                : std::clamp(std::min(crossing(costs, slot_bytes, 2), max), 8 * kKiB, 64 * kKiB);
        found.blocks_direct_from = std::clamp(crossing(costs, slot_bytes, 4), 64 * kKiB, kLongBlock);
        found.reduce_direct_from = std::clamp(found.blocks_direct_from, 128 * kKiB, kLong);
    }
    // A copy by both costs two more system calls and two more lines, but the root has no other use for its
    // core.
    found.both_copy_from = crowded ? SIZE_MAX : 64 * kKiB;
    // If every member combines the whole vector, the work is `members` squared vectors. Shares add one wait
    // for every member, which with more members than cores is a context switch each.
    found.share_from = std::clamp<std::size_t>((crowded ? 64 : 16) * kKiB / members, kKiB, 64 * kKiB);
    return found;
}

Bounds bounds_of(const Agreement& agreement, std::uint32_t members, std::size_t slot_bytes) {
    Bounds found;
    found.crowded = agreement.crowded != 0;
    // Vectors not combined by shares must fit in one slot.
    const Thresholds& from = agreement.thresholds;
    found.share_from = std::clamp<std::size_t>(from.share_from, 1, slot_bytes + 1);
    found.reduce_whole = agreement.reduce_by_shares != 0 ? found.share_from - 1 : slot_bytes;
    if (agreement.single_copy == 0) return found;
    const auto beyond_line = [](std::size_t bytes) { return std::max(bytes, kInlineBytes + 1); };
    found.single_copy_from = beyond_line(from.single_copy_from);
    if (members == 2) found.both_copy_from = std::max(from.both_copy_from, found.single_copy_from);
    if (members == 1) return found;
    for (const Kind kind : {Kind::gather, Kind::scatter, Kind::allgather, Kind::alltoall})
        found.from(kind) = beyond_line(from.blocks_direct_from);
    for (const Kind kind : {Kind::allreduce, Kind::reduce_scatter})
        found.from(kind) = beyond_line(from.reduce_direct_from);
    return found;
}

}  // namespace mcastcoll::host
