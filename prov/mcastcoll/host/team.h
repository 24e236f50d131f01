// Team: the processes of one host that belong to a group, and their collectives through shared memory.
//
// Operations run in the order of posting; README.md describes the algorithms.
//
// progress() never blocks. run() waits in the way that suits the machine (backoff.h). A Team belongs to one
// thread at a time. Buffers belong to the team from post() until `done`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/ring.h"
#include "host/backoff.h"
#include "host/context.h"
#include "host/failure_detector.h"
#include "host/formation.h"

namespace mcastcoll::host {

class Team {
  public:
    static constexpr std::size_t kMaxOpen = 128;

    // Member 0 creates the segment, its peers attach: EAGAIN or ENOENT if the segment does not exist yet.
    // Does not block: operations wait until all members are here.
    static Result<std::unique_ptr<Team>> open(const TeamConfig& config);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    // If peers still wait for this member, their operations end with ECONNRESET.
    ~Team();

    const std::string& name() const { return segment()->name(); }
    const std::shared_ptr<Segment>& segment() const { return formation_.found().segment; }
    // The table that member 0 has stored for the others.
    std::span<const std::byte> table() const { return Formation::table_of(formation_.found()); }
    std::uint32_t self() const { return context_.self; }
    std::uint32_t size() const { return context_.size; }
    // Whether all members are here and have agreed. Advances the formation, as progress() does while
    // operations are open.
    bool formed();

    // Starts an operation. Returns 0; EINVAL for invalid arguments; EMSGSIZE if an element is larger than a
    // slot; EAGAIN if kMaxOpen operations are open. All members post the same operations in the same order.
    // The operation must stay valid until done.
    int post(Operation& operation);
    // Never blocks. Returns true if there was any progress.
    bool progress();
    // Posts an operation and waits; calls `meanwhile` now and then, which returns non-zero if it made
    // progress. Returns the operation's error, or post()'s. A short operation that completes at once is not
    // posted, because the bookkeeping would take longer than the memory accesses.
    int run(Operation& operation, int (*meanwhile)(void*) = nullptr, void* argument = nullptr);
    // One round of waiting after progress() has returned false: spins, yields or sleeps, for `longest` at
    // most. For callers with a loop of their own; a caller with other events to wait for passes a short time.
    void wait_turn(int (*meanwhile)(void*) = nullptr, void* argument = nullptr,
                   Nanoseconds longest = Nanoseconds::from_ms(10));
    // For callers whose loop holds a lock: prepare_nap() counts the caller as a sleeper; then call
    // progress(), release the lock, sleep with nap() unless there was progress or another member is awaited
    // now, and call end_nap().
    Nap prepare_nap() { return context_.rings.alarm.prepare_sleep(awaited()); }
    static void nap(const Nap& nap, Nanoseconds longest) { Alarm::sleep(nap, longest); }
    static void end_nap(const Nap& nap) { Alarm::end_sleep(nap); }
    // The member for which the oldest open operation waits.
    std::uint32_t awaited() const { return context_.rings.awaited(); }
    // Poisons the team: open and later operations of all members end with this error.
    void fail(int error, std::uint32_t lost = Alarm::kNoMember) { context_.rings.alarm.fail(error, lost); }
    // After a failure: ends the open operations here once no member writes into their buffers any more, or
    // after one second.
    void end_open();
    int failure() const { return context_.rings.failure(); }
    // The member that caused the failure, or Alarm::kNoMember.
    std::uint32_t lost() const { return context_.rings.alarm.lost(); }
    // The rank of a lost member of another host, or Alarm::kNoMember.
    std::uint32_t lost_elsewhere() const { return context_.rings.alarm.lost_elsewhere(); }
    void name_lost_elsewhere(std::uint32_t rank) { context_.rings.alarm.name_lost_elsewhere(rank); }
    // When to call progress() again; kNever if no operation is open. For callers that sleep elsewhere.
    Nanoseconds next_deadline();

    const TeamCounters& counters() const { return context_.counters; }
    // Describes sizes and thresholds, with their reasons.
    std::string explain() const { return formation_.explain(context_); }

  private:
    Team(const TeamConfig& config, const Formation::Found& found);

    void end(Operation& operation, int error);
    void end_oldest(int error);
    bool end_all();
    bool look_after_awaited();
    void drop_all();
    void notice_core();
    bool sleep(Nanoseconds longest);

    Formation formation_;
    Context context_;
    Ring<Operation*> window_{kMaxOpen};  // posted and unfinished operations in order
    FailureDetector detector_;
    Backoff backoff_;
};

}  // namespace mcastcoll::host
