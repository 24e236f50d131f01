// A process that floods the ports of a job, or the ports of sockets that only drop the packets, at a given
// rate.
#pragma once

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

// The flooded port. `unknown` is the service port, flooded with hellos (a join's first messages) for joins
// that no member calls.
enum class Port : std::uint8_t { service, multicast, messages, unknown };
inline constexpr std::uint64_t kPorts = 4;
// Floods the members themselves, sockets beside them without a reader, or sockets with a reader.
enum class Victim : std::uint8_t { members, unread, read };

struct Flood {
    Port port = Port::service;
    Victim victim = Victim::members;
    std::uint64_t code() const { return 1U + std::uint64_t(port) + kPorts * std::uint64_t(victim); }
    static Flood of(std::uint64_t code) {
        return {static_cast<Port>((code - 1) % kPorts), static_cast<Victim>((code - 1) / kPorts)};
    }
};

inline constexpr unsigned kFlooded = 4;  // number of members
inline constexpr std::size_t kFloodBytes = 8;
inline constexpr char kSinkGroup[] = "239.77.77.77";

// Words of the board, the memory that all processes of the test share.
inline constexpr std::size_t kFlood = 20;      // the requested flood: a code, or 0
inline constexpr std::size_t kFlooding = 21;   // the flood under way
inline constexpr std::size_t kFloodSent = 22;  // packets sent so far
inline constexpr std::size_t kFloodRate = 23;  // requested packets per second
inline constexpr std::size_t kFloodOver = 24;
// Number of addresses at kGroups that may be the members' groups.
inline constexpr std::size_t kFloodGroups = 25;
inline constexpr std::size_t kFloodList = 26;  // list hash of the members' join
inline constexpr std::size_t kUnreadPort = 27, kReadPort = 28;
inline constexpr std::size_t kGoesOn = 29;        // all members measure once more
inline constexpr std::size_t kProcessorNs = 30;   // processor time, sum over all members
inline constexpr std::size_t kGroups = 64;        // address and port of each group
inline constexpr std::size_t kPrivatePorts = 32;  // one or two per member

void flood(Board& board, const Options& options);

}  // namespace mcastcoll::fabtest
