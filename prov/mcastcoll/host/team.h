// Team: the processes of one host that belong to a group, and their collectives through shared memory.
//
// Operations are carried out in the order in which they were posted: see README.md for each collective's way.
//
// Who has nothing to do never waits in here: progress() returns. run() waits as suits the machine
// (waiting.h). A Team belongs to one thread at a time. Buffers belong to the team from post() until `done`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/ring.h"
#include "host/context.h"
#include "host/formation.h"
#include "host/waiting.h"

namespace mcastcoll::host {

class Team {
  public:
    static constexpr std::size_t kMaxOpen = 128;

    // Member 0 creates, the others attach: EAGAIN or ENOENT before it has. Nobody waits: operations wait
    // until all are there.
    static Result<std::unique_ptr<Team>> open(const TeamConfig& config);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    // Who leaves while others wait for it ends their operations with ECONNRESET.
    ~Team();

    const std::string& name() const { return segment()->name(); }
    const std::shared_ptr<Segment>& segment() const { return formation_.found().segment; }
    // What member 0 has put there for the others.
    std::span<const std::byte> table() const { return Formation::table_of(formation_.found()); }
    std::uint32_t self() const { return context_.self; }
    std::uint32_t size() const { return context_.size; }
    // All are here and have agreed; moved on by progress().
    bool formed();

    // 0; EINVAL for nonsense; EAGAIN when kMaxOpen are open. All members post the same operations in the same
    // order. The operation stays where it is until done.
    int post(Operation& operation);
    // Never waits. True when something moved.
    bool progress();
    // Posts and waits; calls `meanwhile` now and then, which returns non-zero when it got something done.
    // The operation's error, or post()'s. What lies beside the flag and is there, or comes at once, is over
    // without being posted: the bookkeeping would take longer than the memory does.
    int run(Operation& operation, int (*meanwhile)(void*) = nullptr, void* argument = nullptr);
    // One turn of waiting, after progress() has returned false: spins, yields or sleeps, for `longest` at
    // most. For callers with a loop of their own; who has other things to wait for passes a short time.
    void wait_turn(int (*meanwhile)(void*) = nullptr, void* argument = nullptr,
                   Nanoseconds longest = Nanoseconds::from_ms(10));
    // For callers whose loop is under a lock, which none sleeps with: count as a sleeper, call progress(),
    // sleep without the lock unless that got what is waited for, or waits for another member now, and stop
    // counting.
    Nap prepare_nap() { return context_.rings.alarm.prepare_sleep(awaited()); }
    static void nap(const Nap& nap, Nanoseconds longest) { Alarm::sleep(nap, longest); }
    static void end_nap(const Nap& nap) { Alarm::end_sleep(nap); }
    // Whom the oldest open operation waits for.
    std::uint32_t awaited() const { return context_.rings.awaited(); }
    // Poisons the team: everybody's open and later operations end with this error.
    void fail(int error, std::uint32_t lost = Alarm::kNobody) { context_.rings.alarm.fail(error, lost); }
    // Then: ends what is open here, when nobody writes into its buffers any more; after a second, come what
    // may.
    void end_open();
    int failure() const { return context_.rings.failure(); }
    // The member that the failure is about, or Alarm::kNobody.
    std::uint32_t lost() const { return context_.rings.alarm.lost(); }
    // The same of other hosts' members, by rank.
    std::uint32_t lost_elsewhere() const { return context_.rings.alarm.lost_elsewhere(); }
    void name_lost_elsewhere(std::uint32_t rank) { context_.rings.alarm.name_lost_elsewhere(rank); }
    // For who sleeps otherwise: when to call progress() again, kNever when nothing is open.
    Nanoseconds next_deadline();

    const TeamCounters& counters() const { return context_.counters; }
    // Sizes, thresholds, and why.
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
    Ring<Operation*> window_{kMaxOpen};  // what is posted and not over, in its order
    FailureDetector detector_;
    Backoff backoff_;
};

}  // namespace mcastcoll::host
