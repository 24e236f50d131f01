// Dying members: after a member is killed in the middle of an operation, every other member's operation ends
// with an error within a stated time. A member that only sleeps is not declared dead.
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;
using std::chrono::milliseconds;

// A death is noticed at once: this limit is less than FI_MCASTCOLL_HOST_TIMEOUT, which has no effect here. It
// is long only because operations of 64 MiB are under way, and the machine may be busy.
constexpr milliseconds kMustEndWithin{60'000};
constexpr milliseconds kSleeps{3000};

[[noreturn]] void die() {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// Word of the board (the memory that all processes of the test share): survivors whose operation has ended.
constexpr std::size_t kSurvivors = 0;
// Word of the board, set when the stopped member has been continued.
constexpr std::size_t kContinued = 2;

// Checks that the event queue reports the error of the group with the lost member, once.
const GroupError& expect_group_error(Member& me, const Join& group) {
    me.stage("waiting for the group's error on the event queue");
    const bool came = me.wait_until(kMustEndWithin, [&] {
        while (me.read_event())
            ;
        return !me.group_errors().empty();
    });
    if (!came) fail("the event queue did not report the group's end");
    CHECK(me.group_errors().size() == 1);
    const GroupError& error = me.group_errors().front();
    CHECK(error.join == &group);
    CHECK(error.error != 0);
    return error;
}

// Whether the group's error may name no member: over several levels only the host, or site, of the dead
// member can identify it.
bool may_be_unknown(const Member& me) {
    return me.options().places != "flat" && me.options().places != "auto";
}

void expect_lost(Member& me, const Join& group, unsigned dead) {
    const std::uint64_t lost = expect_group_error(me, group).lost;
    if (lost == FI_ADDR_NOTAVAIL && may_be_unknown(me)) return;
    if (lost != dead) fail("the event queue says that rank {} was lost, but it was {}", lost, dead);
}

// Starts an operation after a death. Returns NULL if the call returned the error at once.
Ticket* post_or_fail(Member& me, const std::function<ssize_t(Ticket*)>& call) {
    Ticket& ticket = me.new_ticket();
    ssize_t result = -FI_EAGAIN;
    const bool taken = me.wait_until(kMustEndWithin, [&] {
        result = call(&ticket);
        return result != -FI_EAGAIN;
    });
    if (!taken) fail("an operation was refused with -FI_EAGAIN for {} ms", kMustEndWithin.count());
    if (result == 0) return &ticket;
    me.drop(ticket);
    return nullptr;
}

Ticket* broadcast_from(Member& me, const Join& group, Buffer& buffer, unsigned root) {
    return post_or_fail(me, [&](Ticket* ticket) {
        return fi_broadcast(me.ep(), buffer.data(), buffer.size(), nullptr, group.address(), root, FI_UINT8,
                            0, ticket);
    });
}

Ticket* enter_barrier(Member& me, const Join& group) {
    return post_or_fail(me, [&](Ticket* ticket) { return fi_barrier(me.ep(), group.address(), ticket); });
}

// Waits until every operation has ended, with an error for those that could not complete, and counts this
// member on the board.
void survive(Member& me, const std::vector<Ticket*>& tickets) {
    me.stage("waiting for the error after a member's death");
    for (Ticket* ticket : tickets) {
        if (ticket && !me.settle(*ticket, kMustEndWithin))
            fail("an operation did not end within {} ms of a member's death", kMustEndWithin.count());
    }
    if (tickets.back() && tickets.back()->error == 0)
        fail("the last operation was done, although a member of it is dead");
    me.stage("waiting for the other survivors");
    me.board().words[kSurvivors].fetch_add(1);
    me.wait_until("the other survivors",
                  [&] { return me.board().words[kSurvivors].load() + 1 >= me.size(); });
}

// After a death the group accepts no new operation and can be closed; a group of the survivors works.
void go_on(Member& me, const Join& group, unsigned dead) {
    me.stage("going on after a member's death");
    Ticket& ticket = me.new_ticket();
    const ssize_t result = fi_barrier(me.ep(), group.address(), &ticket);
    if (result == 0) {
        me.settle(ticket);
        CHECK(ticket.error != 0);
    } else {
        me.drop(ticket);
        CHECK(result != -FI_EAGAIN);
    }
    expect_lost(me, group, dead);
    std::vector<unsigned> alive;
    for (unsigned i = 0; i < me.size(); ++i)
        if (i != dead) alive.push_back(i);
    const auto set = me.set_of(alive);
    const auto rest = me.join(set.get());
    for (std::size_t root = 0; root < alive.size(); ++root) {
        Buffer buffer(20'000);
        buffer.poison();
        if (alive[root] == me.rank()) buffer.fill(root);
        me.finish(me.broadcast(*rest, buffer.data(), buffer.size(), root));
        buffer.check(root, "a broadcast among the survivors");
    }
    me.finish(me.barrier(*rest));
    CHECK(me.group_errors().size() == 1);
    me.meet(me.size() - 1);
}

// The root dies while its broadcast is under way. If receivers copy from the root's memory and the root is
// not scheduled, they may receive all data; but the operation after the broadcast cannot complete.
void root_dies(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    Buffer buffer(64u << 20);
    me.finish(me.barrier(*group));
    me.meet();
    Ticket* const first = broadcast_from(me, *group, buffer, 0);
    if (me.rank() == 0) {
        // Through shared memory the whole broadcast can complete within milliseconds.
        if (me.options().places == "flat") me.idle(milliseconds(2));
        die();
    }
    survive(me, {first, enter_barrier(me, *group)});
    go_on(me, *group, 0);
}

// A receiver dies in the middle; the rest may have received the whole message, but the operation after it
// cannot complete.
void receiver_dies(Member& me) {
    const unsigned victim = me.size() - 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    Buffer buffer(64u << 20);
    me.finish(me.barrier(*group));
    me.meet();
    Ticket* const first = broadcast_from(me, *group, buffer, 0);
    if (me.rank() == victim) {
        me.idle(milliseconds(3));
        die();
    }
    survive(me, {first, enter_barrier(me, *group)});
    go_on(me, *group, victim);
}

// A member in the middle of the order dies before it enters a barrier; the rest have entered.
void dies_outside_barrier(Member& me) {
    const unsigned victim = me.size() / 2;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (int i = 0; i < 20; ++i) me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == victim) {
        usleep(100'000);
        die();
    }
    survive(me, {enter_barrier(me, *group)});
    go_on(me, *group, victim);
}

// A member dies at some point in a stream of small operations.
void dies_in_stream(Member& me) {
    const unsigned victim = 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const unsigned last = static_cast<unsigned>(mix(me.options().seed, 5) % 200);
    std::vector<std::byte> buffer(1000);
    me.meet();
    for (unsigned i = 0;; ++i) {
        if (me.rank() == victim && i == last) die();
        const auto since = Clock::now();
        Ticket* ticket = nullptr;
        Ticket& fresh = me.new_ticket();
        ssize_t result;
        do {
            result = i % 3 == 2 ? fi_barrier(me.ep(), group->address(), &fresh)
                                : fi_broadcast(me.ep(), buffer.data(), buffer.size(), nullptr,
                                               group->address(), i % me.size(), FI_UINT8, 0, &fresh);
            if (result == -FI_EAGAIN) me.progress();
        } while (result == -FI_EAGAIN && Clock::now() - since < kMustEndWithin);
        if (result == 0) {
            ticket = &fresh;
            if (!me.settle(fresh, kMustEndWithin))
                fail("operation {} did not end after operation {} was a member's last", i, last);
            if (fresh.error == 0) {
                // The root of a broadcast may complete early, but no member gets far without the dead one.
                if (i > last + 64)
                    fail("operation {} was done without a member that died before {}", i, last);
                continue;
            }
            survive(me, {ticket});
        } else {
            me.drop(fresh);
            CHECK(result != -FI_EAGAIN);
            me.board().words[kSurvivors].fetch_add(1);
            me.wait_until("the other survivors",
                          [&] { return me.board().words[kSurvivors].load() + 1 >= me.size(); });
        }
        break;
    }
    go_on(me, *group, victim);
}

// A member dies while the group is being joined.
void dies_in_join(Member& me) {
    const unsigned victim = me.size() - 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == victim) die();
    const auto joining = me.start_join(set.get());
    if (!me.wait_until(kMustEndWithin, [&] { return joining->done; }))
        fail("a join with a dead member did not end within {} ms", kMustEndWithin.count());
    CHECK(joining->error != 0);
    me.meet(me.size() - 1);
}

bool is_stopped(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name_end = text.rfind(") ");
    return name_end != std::string::npos && text.compare(name_end + 2, 1, "T") == 0;
}

// Stopped for longer than the peer timeout, then continued: no member counts it as dead, and the operations
// under way complete.
void stopped_is_not_dead(Member& me) {
    const unsigned sleeper = me.size() - 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == sleeper) CHECK(raise(SIGSTOP) == 0);
    Buffer buffer(300'000);
    buffer.poison();
    if (me.rank() == 0) buffer.fill(7);
    Ticket& first = me.broadcast(*group, buffer.data(), buffer.size(), 0);
    Ticket& second = me.barrier(*group);
    if (me.rank() == 0) {
        const pid_t pid = me.board().places[sleeper].pid;
        me.wait_until("the sleeper to stop", [&] { return is_stopped(pid); });
        me.idle(kSleeps);
        CHECK(!second.done);
        me.board().words[kContinued] = 1;
        CHECK(kill(pid, SIGCONT) == 0);
    }
    me.finish(second);
    me.finish(first);
    buffer.check(7, "a broadcast with a stopped member");
    CHECK(me.board().words[kContinued] == 1);
    me.meet();
}

constexpr std::size_t kGone = 1;    // word of the board: the old process has died
constexpr unsigned kRestarted = 4;  // number of members in the cases with a restarted member

void work_together(Member& me, const Join& group) {
    for (unsigned root = 0; root < me.size(); ++root) {
        Buffer buffer(20'000);
        buffer.poison();
        if (me.rank() == root) buffer.fill(root);
        me.finish(me.broadcast(group, buffer.data(), buffer.size(), root));
        buffer.check(root, "a broadcast with a member that was started again");
    }
    me.finish(me.barrier(group));
    me.meet();
}

// A member dies, and a new process, successor(), takes over the address while the survivors still hold the
// group. The old group ends with an error; a new group of the same addresses works, whichever member was
// restarted.
template <unsigned kVictim>
void restarted(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == kVictim) die();
    survive(me, {enter_barrier(me, *group)});
    expect_lost(me, *group, kVictim);
    me.board().words[kGone] = 1;
    const auto again = me.join(set.get());
    work_together(me, *again);
}

// No operation waits for the dead member, so no member watches it for its death: only the first message of
// its successor's join reveals the death.
void restarted_unnoticed(Member& me) {
    constexpr unsigned kVictim = 2;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == kVictim) die();
    me.board().words[kGone] = 1;
    expect_lost(me, *group, kVictim);
    const auto again = me.join(set.get());
    work_together(me, *again);
}

template <unsigned kVictim>
void successor(Board& board, const Options& options) {
    // The address is free when the launcher has reaped the dead process: only then have all of its threads
    // ended.
    while ((board.words[kGone] == 0 || kill(board.places[kVictim].pid, 0) == 0) && !board.abandoned)
        usleep(10'000);
    if (board.abandoned) return;
    Opening opening;
    opening.successor = true;
    Member me(options, board, kVictim, kRestarted, opening);
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    work_together(me, *group);
}

// Every member is alive, but one does not enter: with a stall timeout the rest need not wait for ever.
void stalled(Member& me) {
    const unsigned late = me.size() - 1;
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    me.meet();
    if (me.rank() == late) {
        me.wait_until("the others", [&] { return me.board().words[kSurvivors].load() + 1 >= me.size(); });
    } else {
        Ticket* const ticket = enter_barrier(me, *group);
        survive(me, {ticket});
        CHECK(!ticket || ticket->error == FI_ETIMEDOUT);
    }
    const GroupError& error = expect_group_error(me, *group);
    CHECK(error.error == FI_ETIMEDOUT);
    // The member with the first timeout names the member it waits for, which may itself be a waiting member.
    CHECK(error.lost < me.size() || may_be_unknown(me));
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_kill", "Members that die or stop in the middle of operations");
    const std::map<std::string, std::string> usual;
    const std::map<std::string, std::string> quick_join = {{"FI_MCASTCOLL_JOIN_TIMEOUT", "3000"}};
    const auto add = [&](const char* name, void (*body)(Member&), std::vector<unsigned> victims,
                         const auto& environment) {
        program.add({.name = name,
                     .body = body,
                     .members = 4,
                     .victims = std::move(victims),
                     .environment = environment,
                     .only_mcastcoll = true});
    };
    add("the root dies", root_dies, {0}, usual);
    add("a receiver dies", receiver_dies, {3}, usual);
    add("a member dies outside a barrier", dies_outside_barrier, {2}, usual);
    add("a member dies in a stream of operations", dies_in_stream, {1}, usual);
    add("a member dies in a join", dies_in_join, {3}, quick_join);
    add("a stopped member is not dead", stopped_is_not_dead, {}, usual);
    add("a member makes the others wait too long", stalled, {},
        std::map<std::string, std::string>{{"FI_MCASTCOLL_STALL_TIMEOUT", "1"}});
    const auto add_restart = [&](const char* name, void (*body)(Member&),
                                 void (*outsider)(Board&, const Options&), unsigned victim) {
        program.add({.name = name,
                     .body = body,
                     .members = kRestarted,
                     .victims = {victim},
                     .environment = usual,
                     .only_mcastcoll = true,
                     .outsider = outsider});
    };
    add_restart("a member is started again", restarted<2>, successor<2>, 2);
    add_restart("rank 0 is started again", restarted<0>, successor<0>, 0);
    add_restart("a member that no member waits for is started again", restarted_unnoticed, successor<2>, 2);
    return program.run(argc, argv);
}
