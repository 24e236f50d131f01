// A round of the campaign of faults: what is drawn from its seed, and the two sides of it. The members work,
// each in a process on a host of the virtual cluster; a process of its own does to them what was drawn. Both
// know the round; all else they tell each other through the board.
#pragma once

#include <cstdint>
#include <string>

#include "support/board.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

enum class Fault {
    kill,          // a member dies in the middle of operations
    kill_joining,  // or while its group forms
    stop,          // a member stands still for a while
    stop_joining,
    cable,      // a host's cable is pulled, and put back
    hears_not,  // a host sends, and nothing reaches it
    says_not,   // a host hears, and nothing of it reaches anybody
    lossy,      // a host loses part of all that comes, messages too
    mtu,        // a host's link takes shorter packets for a while
    datagrams,  // multicast datagrams are lost, doubled, spoilt and reordered
    memory,     // a host's /dev/shm is full, or nearly
    descriptors,
    clocks  // each host's monotonic clock says something else
};

struct Round {
    std::uint64_t seed = 0;
    unsigned hosts = 0, members = 0, groups = 0, operations = 0;  // operations: of each group
    Fault fault = Fault::kill;
    unsigned victim = 0;  // a rank; it is its host that suffers where a host does
    // When it begins: so many microseconds after the victim has begun its group `group`, or has done
    // `done` operations.
    unsigned group = 0, done = 0, after_us = 0;
    unsigned hold_ms = 0;   // how long it lasts
    unsigned amount = 0;    // per cent, bytes or descriptors
    std::string repair;     // FI_MCASTCOLL_REPAIR
    std::string datagrams;  // FI_MCASTCOLL_FAULT

    unsigned host_of(unsigned rank) const { return rank * hosts / members; }
    bool kills() const { return fault == Fault::kill || fault == Fault::kill_joining; }
    bool is_in_join() const { return fault == Fault::kill_joining || fault == Fault::stop_joining; }
    // Something happens at a time, instead of being so from the beginning.
    bool comes_from_outside() const { return fault < Fault::datagrams; }
    // Operations may end with an error, in time. Else all are done, late perhaps.
    bool may_fail() const { return kills() || fault == Fault::descriptors; }
    // The victim is not there afterwards. What a process was short of may have left what is under mcastcoll
    // without its listener for good.
    bool loses_victim() const { return may_fail(); }
    unsigned living() const { return members - (loses_victim() ? 1 : 0); }
};

Round draw(std::uint64_t seed, unsigned hosts);
std::string describe(const Round& round);

// What is set for all members, and what they are held to. Slowness is no failure: what a busy machine may add
// is the same again, several times.
inline constexpr unsigned kHostTimeoutMs = 3000, kJoinTimeoutMs = 6000;
inline constexpr unsigned kBusyMs = 12'000;

// Words of the board.
inline constexpr std::size_t kLifted = 0;    // the fault is over
inline constexpr std::size_t kDiedAtUs = 1;  // on everybody's clock
inline constexpr std::size_t kHeardUs = 2;   // the longest from the death to an error
inline constexpr std::size_t kErrors = 3;
inline constexpr std::size_t kJoins = 100;  // and a member's rank: groups that it has begun
inline constexpr std::size_t kDone = 1100;  // and a member's rank: operations that it has done

// The process of a member: returns its exit code.
int be_member(const Round& round, const Options& options, Board& board, unsigned rank);
// The process that does to them what was drawn.
int be_fate(const Round& round, const std::string& cluster, Board& board);

// What must be there before the processes are: goes with the object.
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
