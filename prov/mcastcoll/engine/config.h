// What an engine is made with. Everything a group agreed on at its join, and this member's own limits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "engine/pool.h"
#include "wire/packet.h"

namespace mcastcoll::engine {

// How losses are repaired; policy.h says what each means. The numbers travel in the welcome.
enum class Repair : std::uint8_t { pull, push, sync, automatic };
inline constexpr std::uint8_t kRepairCount = 4;
constexpr std::string_view name_of(Repair repair) {
    constexpr std::string_view kNames[] = {"pull", "push", "sync", "auto"};
    return kNames[static_cast<std::uint8_t>(repair) % kRepairCount];
}

// What a root waits for before it multicasts; policy.h. The numbers travel in the welcome.
enum class RootSync : std::uint8_t { none, delay, random, adaptive };
inline constexpr std::uint8_t kRootSyncCount = 4;
constexpr std::string_view name_of(RootSync sync) {
    constexpr std::string_view kNames[] = {"none", "delay", "random", "adaptive"};
    return kNames[static_cast<std::uint8_t>(sync) % kRootSyncCount];
}

// Why a group fails for the others when a member closes it before the join is over: ECANCELED.
inline constexpr int kClosedEarly = 125;

// What combiners may rely on: no type needs more.
inline constexpr std::uint32_t kVectorAlignment = 16;

// Whether more is multicast than a message has; redundancy.h. The numbers travel in the welcome.
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

    // Equal on all members.
    wire::Checksum checksum = wire::Checksum::crc32c;  // none: tags stand in for it, made and checked outside
    std::uint32_t fragment_bytes = 1424;               // payload of a multicast datagram
    std::uint32_t retransmit_bytes = 8192;  // longest message kept for repair until everybody has it
    std::uint32_t operation_slots = 128;    // operations between the slowest and the fastest member
    std::uint32_t checkpoint_every = 32;  // operations between two agreements on what everybody has finished,
    std::uint32_t checkpoint_bytes = 512 * 1024;  // or fewer that have so many bytes kept for repair
    std::uint32_t window = 256;    // fragments a root may be ahead of the slowest member that hears it
    std::uint32_t tree_arity = 4;  // children per member in the trees of gathers, reports and small repairs
    std::uint32_t large_tree_arity = 1;  // for large messages to the deaf: a chain halves nobody's bandwidth
    std::uint32_t gather_bytes = 1024;   // vectors up to this are reduced inside the gathers
    std::uint32_t parity_buffers = 16;   // rows of parity that wait for more of their blocks; 0: no parity
    std::uint32_t early_buffers = 4;     // for the first fragments of large operations that are not posted
    std::uint32_t late_bytes = 1 << 20;  // longest large message that is copied for those who are late
    std::uint32_t late_copies = 4;       // so many at a time
    Repair repair = Repair::pull;
    std::uint32_t channels = 16;  // under sync: operations that may be under way between two agreements
    Redundancy redundancy = Redundancy::automatic;
    RootSync root_sync = RootSync::none;
    Nanoseconds root_delay{};  // of RootSync::delay

    // Multicast addresses of the group, and by rank which of them a member listens to; empty: all the first.
    std::uint32_t ranges = 1;
    std::vector<std::uint8_t> range_of;
    bool relay = false;  // a root multicasts to its own range only, and the other ranges' leaders onward

    // This member's own.
    MemorySource memory;                      // for retransmit buffers, and for vectors that come early
    std::uint32_t message_bytes = 65536;      // longest message, header included
    std::uint32_t pending_operations = 1024;  // submitted but not yet started
    bool multicast = true;                    // this member has a multicast socket
    std::uint32_t probes = 4;                 // datagrams each member multicasts at the join
    Nanoseconds probe_interval = Nanoseconds::from_ms(1);
    Nanoseconds probe_settle = Nanoseconds::from_ms(50);  // longest wait for the last probe
    // Between two elections about the multicast while operations run, and between two beacons of a mute root.
    Nanoseconds least_election_interval = Nanoseconds::from_ms(50),
                most_election_interval = Nanoseconds::from_ms(5000);
    Nanoseconds least_beacon_interval = Nanoseconds::from_ms(1),
                most_beacon_interval = Nanoseconds::from_ms(1000);
    Nanoseconds initial_rtt = Nanoseconds::from_us(200);
    // Bounds of the deadlines that are measured otherwise. The least ones stand for how long this machine may
    // merely be busy with something else; a few round trips may raise the most.
    Nanoseconds least_silence = Nanoseconds::from_us(300);  // before anything of an operation was heard
    Nanoseconds least_tail = Nanoseconds::from_us(300);     // after something was heard of it
    Nanoseconds least_gap = Nanoseconds::from_us(20);       // a hole that may be mere reordering
    Nanoseconds most_silence = Nanoseconds::from_ms(2);
    // Silence that is long enough for a question while nothing is lost in the group: then it is a process
    // that does not run, very likely, which no question wakes. Nobody waits for longer for the first of a
    // long vector's result, either.
    Nanoseconds lossless_silence = Nanoseconds::from_ms(10);
    Nanoseconds watch_delay = Nanoseconds::from_ms(100);  // who waits longer asks whether the other lives

    // Operations between two agreements on what everybody has finished, under this member's policy.
    std::uint32_t checkpoint_interval() const { return repair == Repair::sync ? channels : checkpoint_every; }
    // How far ahead of the last agreement this member may begin operations.
    std::uint32_t most_ahead() const { return repair == Repair::sync ? channels : operation_slots; }
    Nanoseconds stall_timeout = kNever;  // an operation without progress for so long fails the group

    std::uint32_t range(Rank rank) const { return range_of.empty() ? 0 : range_of[index_of(rank)]; }
    // Members report a large operation of so many fragments whenever they have another so many of it. One
    // that is in the window as a whole never waits for them, only what the root sends after it.
    std::uint32_t report_step(std::uint32_t of) const { return of <= window ? window / 2 : window / 4; }
    // A multiple of what any element is aligned to.
    std::uint32_t most_gathered() const { return gather_bytes / kVectorAlignment * kVectorAlignment; }
    // Longer vectors travel in pieces: as many whole elements as a fragment holds.
    std::uint32_t piece_bytes(std::uint32_t element_bytes) const {
        return fragment_bytes / element_bytes * element_bytes;
    }
    bool large(std::uint64_t bytes) const { return bytes > retransmit_bytes; }
    std::uint32_t fragments(std::uint64_t bytes) const {
        return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + fragment_bytes - 1) / fragment_bytes);
    }
};

}  // namespace mcastcoll::engine
