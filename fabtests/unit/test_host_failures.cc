// Errors that the members of a host::Team get when another member dies, stops, or leaves.
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "host/process.h"
#include "host_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using host::Kind;
using host::Operation;
using host::Team;

Test(host, poison_ends_everything) {
    expect(members(3), [](Team& team) {
        if (barrier(team) != 0) return 1;
        if (team.self() == 1) {
            ::usleep(30'000);
            team.fail(ECANCELED);
        } else if (barrier(team) != ECANCELED) {
            return 2;
        }
        return barrier(team) == ECANCELED && team.failure() == ECANCELED ? 0 : 3;
    });
}

namespace {

// Member 1 dies in the middle of operations of a kind; the survivors detect the death.
void death(Kind kind, std::size_t bytes, bool others_sleep, std::uint32_t count = 3, bool direct = false) {
    MembersOptions options = members(count);
    if (direct) options.config.thresholds = {.blocks_direct_from = 1, .reduce_direct_from = 1};
    expect(
        options,
        [&](Team& team) {
            std::vector<std::byte> data(bytes * count), input(bytes * count);
            const auto once = [&](std::uint32_t root) {
                Operation op{.kind = kind, .root = root, .buffer = data.data(), .input = input.data()};
                op.bytes = op.ready = bytes;
                op.combiner = {add, 8};
                return team.run(op);
            };
            for (std::uint32_t i = 0; i < 20; ++i)
                if (once(i % count) != 0) return 1;
            if (barrier(team) != 0) return 2;
            if (team.self() == 1) ::kill(::getpid(), SIGKILL);
            if (others_sleep) ::usleep(300'000);
            int code = 0;
            for (std::uint32_t i = 0; code == 0 && i < 100; ++i) code = once(i % count);
            if (code != ECONNRESET) return 3;
            return barrier(team) == ECONNRESET ? 0 : 5;
        },
        1);
}

}  // namespace

Test(host, death_in_a_barrier) {
    death(Kind::barrier, 0, false);
}

Test(host, death_in_broadcasts) {
    death(Kind::broadcast, 8, false);
    death(Kind::broadcast, 20'000, false);
    death(Kind::broadcast, 4'000'000, false);
    death(Kind::broadcast, 4'000'000, true);
}

Test(host, death_in_broadcasts_that_both_copy) {
    for (const bool others_sleep : {false, true}) death(Kind::broadcast, 4'000'000, others_sleep, 2);
}

Test(host, death_in_reductions_and_allgather) {
    death(Kind::allreduce, 8, false);
    death(Kind::allreduce, 400'000, false);
    death(Kind::reduce, 400'000, false);
    death(Kind::allgather, 100'000, true);
}

Test(host, death_in_what_moves_blocks) {
    for (const bool direct : {false, true})
        for (const Kind kind : {Kind::gather, Kind::scatter, Kind::alltoall, Kind::reduce_scatter,
                                Kind::allgather, Kind::allreduce})
            death(kind, 100'000, kind == Kind::alltoall, 3, direct);
}

// The kernel may refuse a copy after all members have tested copying: then all members get an error, and no
// wrong byte.
Test(host, a_copy_that_is_refused_later_ends_it) {
    if (::geteuid() != 0) cr_skip_test("changing users takes rights that we do not have");
    MembersOptions options = members(3);
    options.config.thresholds.single_copy_from = 1;
    expect(options, [](Team& team) {
        if (barrier(team) != 0) return 1;
        if (team.explain().find("no direct copies") != std::string::npos) return 0;
        if (team.self() == 1 && ::setresuid(65'534, 65'534, 65'534) != 0) return 2;
        std::vector<std::byte> data(20'000, std::byte(team.self() == 0 ? 7 : 1));
        Operation op{.kind = Kind::broadcast, .buffer = data.data(), .bytes = data.size()};
        op.ready = op.bytes;
        const int code = team.run(op);
        if (team.self() != 2 && code != EPERM) return 3;
        if (code == 0 && data != std::vector<std::byte>(data.size(), std::byte{7})) return 4;
        return barrier(team) == EPERM ? 0 : 5;
    });
}

// On a busy machine polls are far apart: the detection must depend on the time, not on the number of polls.
Test(host, a_death_is_detected_in_few_polls) {
    auto* dying = static_cast<std::atomic<pid_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    expect(
        members(2),
        [&](Team& team) {
            if (barrier(team) != 0) return 1;
            if (team.self() == 1) {
                dying->store(::getpid());
                ::kill(::getpid(), SIGKILL);
            }
            while (dying->load() == 0 || host::is_alive(static_cast<std::uint32_t>(dying->load()), 0))
                ::usleep(1000);
            Operation op{.kind = Kind::barrier};
            if (team.post(op) != 0) return 2;
            for (int poll = 0; poll < 200 && !op.done; ++poll) {
                team.progress();
                ::usleep(1000);
            }
            if (op.done) return op.error == ECONNRESET ? 0 : 3;
            team.fail(ECANCELED);
            while (!op.done) team.progress();
            return 4;
        },
        1);
    ::munmap(dying, 4096);
}

Test(host, a_stopped_process_is_alive) {
    expect(members(2), [](Team& team) {
        if (barrier(team) != 0) return 1;
        if (team.self() == 1) {
            const pid_t self = ::getpid();
            const pid_t waker = ::fork();
            if (waker == 0) {
                ::usleep(1'500'000);
                ::kill(self, SIGCONT);
                ::_exit(0);
            }
            ::kill(self, SIGSTOP);
            ::waitpid(waker, nullptr, 0);
        }
        if (barrier(team) != 0) return 2;
        // The waiting member slept instead of polling.
        return team.self() == 0 && team.counters().sleeps == 0 ? 3 : 0;
    });
}

Test(host, leaving_while_others_wait_ends_the_operation) {
    expect(members(3), [](Team& team) {
        if (barrier(team) != 0) return 1;
        if (team.self() == 2) return 0;
        return barrier(team) == ECONNRESET ? 0 : 2;
    });
}

Test(host, a_dead_process_and_a_reused_number) {
    const host::Process self = host::this_process();
    cr_assert(host::is_alive(self.pid, self.start_time));
    const auto parent = static_cast<std::uint32_t>(::getppid());
    cr_assert(host::is_alive(parent, 0));
    cr_assert_eq(host::is_alive(parent, 1), false, "started at another time");
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    siginfo_t ended;
    cr_assert_eq(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    cr_assert_eq(host::is_alive(static_cast<std::uint32_t>(child), 0), false, "a zombie is dead");
    ::waitpid(child, nullptr, 0);
    cr_assert_eq(host::is_alive(static_cast<std::uint32_t>(child), 0), false);
}
