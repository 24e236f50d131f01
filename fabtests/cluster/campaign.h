// A round of the campaign of faults: the parameters drawn from its seed, and its two sides. Members work,
// each in a process on a host of the virtual cluster; a separate process injects the fault. Both sides know
// the round, and exchange everything else through the board.
#pragma once

#include <cstdint>
#include <string>

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

enum class Fault {
    kill,          // a member dies in the middle of operations
    kill_joining,  // a member dies while its group forms
    stop,          // a member is stopped for a while
    stop_joining,
    cable,         // a host's cable is unplugged, and plugged in again
    receives_not,  // a host sends, but receives nothing
    sends_not,     // a host receives, but no host receives from it
    lossy,         // a host loses a part of the packets to it, TCP included
    mtu,           // a host's link has a smaller MTU for a while
    datagrams,     // multicast datagrams are lost, duplicated, corrupted and reordered
    memory,        // a host's /dev/shm is full, or nearly full
    descriptors,
    clocks  // the hosts' monotonic clocks differ
};

struct Round {
    std::uint64_t seed = 0;
    unsigned hosts = 0, members = 0, groups = 0, operations = 0;  // operations: per group
    Fault fault = Fault::kill;
    unsigned victim = 0;  // a rank; for a fault of a host, the rank's host
    // Start of the fault: after_us microseconds after the victim has begun its group `group`, or has
    // completed `done` operations.
    unsigned group = 0, done = 0, after_us = 0;
    unsigned hold_ms = 0;   // duration of the fault
    unsigned amount = 0;    // percent, bytes or descriptors
    std::string repair;     // FI_MCASTCOLL_EXPERIMENT=repair=
    std::string datagrams;  // FI_MCASTCOLL_FAULT

    unsigned host_of(unsigned rank) const { return rank * hosts / members; }
    bool kills() const { return fault == Fault::kill || fault == Fault::kill_joining; }
    bool is_in_join() const { return fault == Fault::kill_joining || fault == Fault::stop_joining; }
    // Whether the fault begins at a point in time, rather than lasting from the start.
    bool comes_from_outside() const { return fault < Fault::datagrams; }
    // Whether operations may end with an error, in time. Otherwise all complete, possibly late.
    bool may_fail() const { return kills() || fault == Fault::descriptors; }
    // Whether the victim takes no part after the fault: if a process had too few descriptors, its inner
    // provider may have lost its listener for good.
    bool loses_victim() const { return may_fail(); }
    unsigned living() const { return members - (loses_victim() ? 1 : 0); }
};

Round draw(std::uint64_t seed, unsigned hosts);
std::string describe(const Round& round);

// Timeouts of all members, and the limits that members must keep. A slow machine must not fail the test, so
// the limits allow several times as much.
inline constexpr unsigned kHostTimeoutMs = 3000, kJoinTimeoutMs = 6000;
inline constexpr unsigned kBusyMs = 12'000;

// Words of the board, the memory that all processes of a round share.
inline constexpr std::size_t kLifted = 0;    // the fault is over
inline constexpr std::size_t kDiedAtUs = 1;  // all hosts share this clock
inline constexpr std::size_t kErrorUs = 2;   // the longest time from the death to an error
inline constexpr std::size_t kErrors = 3;
inline constexpr std::size_t kJoins = 100;  // plus a member's rank: groups begun
inline constexpr std::size_t kDone = 1100;  // plus a member's rank: operations completed

// Runs in the process of a member; returns its exit code.
int be_member(const Round& round, const Options& options, Board& board, unsigned rank);
// Runs in the fault-injecting process.
int inject_fault(const Round& round, const std::string& cluster, Board& board);

// A condition that must exist before the processes start; removed by the destructor.
class Preparation {
  public:
    Preparation(const Round& round, const std::string& cluster);
    ~Preparation();
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;

  private:
    std::string mounted_;
};

std::uint64_t now_us();

}  // namespace mcastcoll::fabtest
