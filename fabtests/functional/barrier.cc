// Barriers: no member leaves before all have entered, checked through shared memory; with one member, with
// flags, in several groups and between broadcasts.
#include <unistd.h>

#include <thread>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

// Enters the barrier number `round` with a delay drawn from the seed. On completion every member must have
// entered.
void checked_barrier(Member& me, const Join& group, std::uint64_t round, std::uint64_t flags,
                     std::size_t words_from = 0) {
    auto& words = me.board().words;
    if (mix(me.options().seed, round, me.rank()) % 4 == 0)
        usleep(static_cast<unsigned>(mix(round, me.rank()) % 2000));
    words[words_from + me.rank()].store(round + 1);
    me.finish(me.barrier(group, flags));
    for (unsigned i = 0; i < me.size(); ++i) {
        const std::uint64_t entered = words[words_from + i].load();
        if (entered < round + 1)
            fail("left barrier {} while member {} had entered {} of them", round, i, entered);
        if (entered > round + 2) fail("member {} is in barrier {} while I leave {}", i, entered - 1, round);
    }
}

void barriers(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const std::uint64_t rounds = me.options().large ? 20'000 : 400;
    for (std::uint64_t round = 0; round < rounds; ++round) checked_barrier(me, *group, round, 0);
    me.meet();
}

void barriers_with_flags(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (std::uint64_t round = 0; round < 50; ++round) {
        Ticket& ticket = me.new_ticket();
        if (const ssize_t result = fi_barrier2(me.ep(), group->address(), FI_COMPLETION, &ticket);
            result == -FI_ENOSYS)
            throw Skipped("fi_barrier2 is not there");
        else
            CHECK(result == 0);
        me.finish(ticket);
        checked_barrier(me, *group, round, FI_COMPLETION);
    }
    me.meet();
}

// A member outside the barrier delays the members inside.
void one_stays_out(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    auto& words = me.board().words;
    for (unsigned out = 0; out < me.size(); ++out) {
        if (me.rank() == out) {
            me.idle(std::chrono::milliseconds(150));
            words[out].store(1);
            me.finish(me.barrier(*group));
        } else {
            Ticket& ticket = me.barrier(*group);
            me.settle(ticket);
            if (words[out].load() != 1) fail("left a barrier that member {} had not entered", out);
            me.finish(ticket);
        }
        me.meet();
    }
}

// Barriers and broadcasts keep their order when several are in flight.
void mixed(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    const std::size_t bytes = me.options().is_mcastcoll() ? 30'001 : 512 * me.size();
    for (std::uint64_t round = 0; round < 60; ++round) {
        const auto root = static_cast<unsigned>(round % me.size());
        const std::uint64_t seed = mix(me.options().seed, round);
        Buffer before(bytes), after(bytes);
        before.poison(), after.poison();
        if (me.rank() == root) before.fill(seed), after.fill(seed + 1);
        if (me.options().is_mcastcoll()) {
            Ticket& first = me.broadcast(*group, before.data(), bytes, root);
            me.board().words[me.rank()].store(round + 1);
            Ticket& middle = me.barrier(*group);
            Ticket& last = me.broadcast(*group, after.data(), bytes, root);
            me.finish(middle);
            for (unsigned i = 0; i < me.size(); ++i) CHECK(me.board().words[i].load() >= round + 1);
            me.finish(last);
            me.finish(first);
        } else {
            me.finish(me.broadcast(*group, before.data(), bytes, root));
            checked_barrier(me, *group, round, 0);
            me.finish(me.broadcast(*group, after.data(), bytes, root));
        }
        before.check(seed, "the broadcast before a barrier");
        after.check(seed + 1, "the broadcast behind a barrier");
    }
    me.meet();
}

void several_groups(Member& me) {
    const auto set = me.all_members();
    const auto one = me.join(set.get());
    const auto two = me.join(set.get());
    for (std::uint64_t round = 0; round < 100; ++round) {
        checked_barrier(me, *one, round, 0);
        checked_barrier(me, *two, round, 0, kMaxProcesses);
    }
    // Both barriers are open at once and are entered in different orders.
    for (int round = 0; round < 50; ++round) {
        Ticket& first = me.barrier(me.rank() % 2 ? *one : *two);
        Ticket& second = me.barrier(me.rank() % 2 ? *two : *one);
        me.finish(first);
        me.finish(second);
    }
    me.meet();
}

// All members compute for a while right after the join, and then barriers lose datagrams. The round trip
// measured at the join must not include that time, because every repair would then take as long: with it,
// half of these barriers' repairs alone would exceed the case's time limit.
void after_computing(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    std::this_thread::sleep_for(std::chrono::seconds(2));
    for (std::uint64_t round = 0; round < 200; ++round) me.finish(me.barrier(*group));
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_barrier", "Barriers: no member leaves before all members have entered");
    program.add({"barriers", barriers});
    program.add({"barriers with flags", barriers_with_flags});
    program.add({"one member stays out", one_stays_out});
    program.add({"between broadcasts", mixed});
    program.add({.name = "several groups", .body = several_groups});
    program.add({.name = "after computing, 10 % lost",
                 .body = after_computing,
                 .environment = {{"FI_MCASTCOLL_FAULT", "loss=10,seed=9"}},
                 .only_mcastcoll = true});
    return program.run(argc, argv);
}
