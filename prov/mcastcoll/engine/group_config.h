// Parameters of an engine: values that the group agreed on at its join, and this member's own limits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "engine/pool.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

// Repair policy; policy.h describes the values. The numbers travel in the welcome.
enum class Repair : std::uint8_t { pull, push, sync, automatic };
inline constexpr std::uint8_t kRepairCount = 4;
constexpr std::string_view name_of(Repair repair) {
    constexpr std::string_view kNames[] = {"pull", "push", "sync", "auto"};
    return kNames[static_cast<std::uint8_t>(repair) % kRepairCount];
}

// Root synchronisation; root_synchronizer.h describes the values. The numbers travel in the welcome.
enum class RootSync : std::uint8_t { none, delay, random, adaptive };
inline constexpr std::uint8_t kRootSyncCount = 4;
constexpr std::string_view name_of(RootSync sync) {
    constexpr std::string_view kNames[] = {"none", "delay", "random", "adaptive"};
    return kNames[static_cast<std::uint8_t>(sync) % kRootSyncCount];
}

// Error of the other members when a member closes the group before the join is over: ECANCELED.
inline constexpr int kClosedEarly = 125;

// Alignment that combiners may rely on; no datatype needs more.
inline constexpr std::uint32_t kVectorAlignment = 16;

// Whether roots multicast copies and parity; redundancy_policy.h. The numbers travel in the welcome.
enum class Redundancy : std::uint8_t { automatic, off, on };
inline constexpr std::uint8_t kRedundancyCount = 3;
constexpr std::string_view name_of(Redundancy redundancy) {
    constexpr std::string_view kNames[] = {"auto", "off", "on"};
    return kNames[static_cast<std::uint8_t>(redundancy) % kRedundancyCount];
}

struct GroupConfig {
    Rank self{};
    std::uint32_t members = 1;
    GroupKey key{};
    Epoch epoch{};

    // The following values are equal on all members.
    wire::Checksum checksum = wire::Checksum::crc32c;  // none: the caller makes and checks tags instead
    std::uint32_t fragment_bytes = 1424;               // payload of a multicast datagram
    std::uint32_t retransmit_bytes = 8192;  // longest small message, kept for repair up to the watermark
    std::uint32_t operation_slots = 128;    // operations between the slowest and the fastest member
    std::uint32_t checkpoint_every = 32;    // operations between two agreements on the watermark
    std::uint32_t checkpoint_bytes = 512 * 1024;  // kept for repair: as many cause an earlier agreement
    std::uint32_t window = 256;    // fragments that a root may be ahead of its slowest receiver
    std::uint32_t tree_arity = 4;  // children per member in the gather and report trees and for small repairs
    std::uint32_t large_tree_arity = 1;  // for large messages to deaf members: a chain splits no bandwidth
    std::uint32_t gather_bytes = 1024;   // vectors up to this length are reduced inside the gathers
    std::uint32_t parity_buffers = 16;   // parity rows that wait for the rest of their blocks; 0: no parity
    std::uint32_t early_buffers = 4;     // for the first window of large operations that are not posted
    std::uint32_t late_bytes = 1 << 20;  // longest large message that is copied for slow members
    std::uint32_t late_copies = 4;       // number of such copies at a time
    Repair repair = Repair::pull;
    std::uint32_t channels = 16;  // under sync: operations between two agreements
    Redundancy redundancy = Redundancy::automatic;
    RootSync root_sync = RootSync::none;
    Nanoseconds root_delay{};  // of RootSync::delay

    std::uint32_t ranges = 1;  // number of the group's multicast addresses, one for each range of ranks
    // By rank: index of the address to which the member listens. Empty: all members listen to the first.
    std::vector<std::uint8_t> range_of;
    bool relay = false;  // the root multicasts to its own range, and leaders to the other ranges

    // The following values are this member's own.
    MemorySource memory;                  // for retransmit, early, late and parity buffers and early vectors
    std::uint32_t message_bytes = 65536;  // longest message, header included
    std::uint32_t pending_operations = 1024;  // submitted but not yet started
    bool multicast = true;                    // this member has a multicast socket
    std::uint32_t probes = 4;                 // datagrams per probing member and election
    Nanoseconds probe_interval = Nanoseconds::from_ms(1);
    Nanoseconds probe_settle = Nanoseconds::from_ms(50);  // longest wait for the last probe
    // Bounds of the interval between two elections during operation.
    Nanoseconds min_election_interval = Nanoseconds::from_ms(50),
                max_election_interval = Nanoseconds::from_ms(5000);
    // Bounds of the interval between two beacons of a mute root (elections.h).
    Nanoseconds min_beacon_interval = Nanoseconds::from_ms(1),
                max_beacon_interval = Nanoseconds::from_ms(1000);
    Nanoseconds initial_rtt = Nanoseconds::from_us(200);
    // Bounds of measured deadlines. The min_ values cover the time for which a busy machine may delay a
    // process; a simulator may set them to 0. max_silence is raised to a few round trips.
    Nanoseconds min_silence = Nanoseconds::from_us(300);  // before the first fragment of an operation
    Nanoseconds min_tail = Nanoseconds::from_us(300);     // after the first fragment of an operation
    Nanoseconds min_gap = Nanoseconds::from_us(20);       // before a NAK for a hole, which may be reordering
    Nanoseconds max_silence = Nanoseconds::from_ms(2);
    // Wait before a NAK while the group loses nothing: silence then most likely means a process that is not
    // scheduled, which a NAK cannot wake. Also the longest wait for the first fragment of a long vector's
    // result.
    Nanoseconds lossless_silence = Nanoseconds::from_ms(10);
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);  // a longer wait has the peer's process watched

    // Operations between two agreements on the watermark under this member's policy.
    std::uint32_t checkpoint_interval() const { return repair == Repair::sync ? channels : checkpoint_every; }
    // Distance above the watermark up to which this member may begin operations.
    std::uint32_t max_ahead() const { return repair == Repair::sync ? channels : operation_slots; }
    Nanoseconds stall_timeout = kNever;  // an operation without progress for this long fails the group

    std::uint32_t range(Rank rank) const { return range_of.empty() ? 0 : range_of[index_of(rank)]; }
    // Step in fragments at which members report progress of a large operation of `of` fragments. A message
    // that fits in the window never waits for reports; later messages of the root may.
    std::uint32_t report_step(std::uint32_t of) const { return of <= window ? window / 2 : window / 4; }
    // gather_bytes, rounded down to a multiple of the alignment of any element.
    std::uint32_t max_gathered() const { return gather_bytes / kVectorAlignment * kVectorAlignment; }
    // Longer vectors travel in pieces of as many whole elements as fit in a fragment.
    std::uint32_t piece_bytes(std::uint32_t element_bytes) const {
        return fragment_bytes / element_bytes * element_bytes;
    }
    bool large(std::uint64_t bytes) const { return bytes > retransmit_bytes; }
    std::uint32_t fragments(std::uint64_t bytes) const {
        return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + fragment_bytes - 1) / fragment_bytes);
    }
};

}  // namespace mcastcoll::engine
