// Who floods the ports of a job, as fast as it is told to, and those of sockets that only drop what comes.
#pragma once

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

// unknown: the service port, by greetings for joins that nobody calls.
enum class Port : std::uint8_t { service, multicast, messages, unknown };
inline constexpr std::uint64_t kPorts = 4;
// To the members themselves; to sockets beside them that nobody reads; to such that somebody reads.
enum class Victim : std::uint8_t { members, unread, read };

struct Flood {
    Port port = Port::service;
    Victim victim = Victim::members;
    std::uint64_t code() const { return 1U + std::uint64_t(port) + kPorts * std::uint64_t(victim); }
    static Flood of(std::uint64_t code) {
        return {static_cast<Port>((code - 1) % kPorts), static_cast<Victim>((code - 1) / kPorts)};
    }
};

inline constexpr unsigned kFlooded = 4;  // members
inline constexpr std::size_t kFloodBytes = 8;
inline constexpr char kSinkGroup[] = "239.77.77.77";

// Words of the board.
inline constexpr std::size_t kFlood = 20;      // what is wanted: a code, or 0
inline constexpr std::size_t kFlooding = 21;   // what is done
inline constexpr std::size_t kFloodSent = 22;  // packets so far
inline constexpr std::size_t kFloodRate = 23;  // so many a second are wanted
inline constexpr std::size_t kFloodOver = 24;
inline constexpr std::size_t kFloodGroups = 25;  // so many addresses at kGroups may be the members'
inline constexpr std::size_t kFloodList = 26;    // of their join
inline constexpr std::size_t kUnreadPort = 27, kReadPort = 28;
inline constexpr std::size_t kGoesOn = 29;        // all measure once more
inline constexpr std::size_t kProcessorNs = 30;   // of all members
inline constexpr std::size_t kGroups = 64;        // address and port
inline constexpr std::size_t kPrivatePorts = 32;  // two for each member, or one

void flood(Board& board, const Options& options);

}  // namespace mcastcoll::fabtest
