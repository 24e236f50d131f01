// Faults injected into a round from outside: signals, links, filters, memory.
//
// Not covered: jumps of the clock. Collectives read the monotonic clock, which never jumps; a time namespace
// sets its offset once, before a process enters it, which is the fault `clocks`. The wall clock belongs to
// the whole machine. Packets other than multicast datagrams are neither duplicated nor reordered: this needs
// netem, which kernels may lack, and TCP corrects such packets below the messages.
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "campaign.h"
#include "support/failure.h"
#include "support/launcher.h"

namespace mcastcoll::fabtest {
namespace {

constexpr unsigned kUsualMtu = 1500;

void command(const std::string& text) {
    if (const int code = std::system(text.c_str()); code != 0) fail("'{}' returned {}", text, code);
}

std::string host_name(const std::string& cluster, unsigned host) {
    return fmt::format("{}-h{}", cluster, host);
}

// Returns the name of the switch of the first site; the campaign's cluster has only one switch.
std::string switch_name(const std::string& cluster) {
    return cluster + "-sw0";
}

void sleep_us(std::uint64_t us) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Waits until a word of the board has this value. Returns false if other processes have ended before.
bool comes(Board& board, std::size_t word, std::uint64_t value) {
    const auto until = now_us() + (kJoinTimeoutMs + kBusyMs) * 1000ULL;
    while (board.words[word] < value) {
        if (board.abandoned || now_us() > until) return false;
        sleep_us(100);
    }
    return true;
}

void filter(const std::string& space, const std::string& device, const std::string& rule) {
    command(
        fmt::format("ip netns exec {0} nft 'add table netdev fault; add chain netdev fault in "
                    "{{ type filter hook ingress device {1} priority -20; }}; add rule netdev fault in {2}'",
                    space, device, rule));
}

void lift(const std::string& space) {
    command(fmt::format("ip netns exec {} nft delete table netdev fault", space));
}

void strike(const Round& round, const std::string& cluster, Board& board) {
    const unsigned number = round.host_of(round.victim);
    const std::string host = host_name(cluster, number), port = fmt::format("h{}", number);
    const std::string hub = switch_name(cluster);
    const pid_t victim = board.places[round.victim].pid;
    const auto hold = [&] { sleep_us(round.hold_ms * 1000ULL); };
    switch (round.fault) {
        case Fault::kill:
        case Fault::kill_joining:
            board.words[kDiedAtUs] = now_us();
            CHECK(kill(victim, SIGKILL) == 0);
            return;
        case Fault::stop:
        case Fault::stop_joining:
            CHECK(kill(victim, SIGSTOP) == 0);
            hold();
            CHECK(kill(victim, SIGCONT) == 0);
            return;
        case Fault::cable:
            command(fmt::format("ip -n {} link set {} down", hub, port));
            hold();
            command(fmt::format("ip -n {} link set {} up", hub, port));
            return;
        case Fault::receives_not:
        case Fault::sends_not: {
            const bool in = round.fault == Fault::receives_not;
            filter(in ? host : hub, in ? "eth0" : port, "drop");
            hold();
            lift(in ? host : hub);
            return;
        }
        case Fault::lossy:
            filter(host, "eth0", fmt::format("numgen random mod 100 < {} drop", round.amount));
            hold();
            lift(host);
            return;
        case Fault::mtu:
            command(fmt::format("ip -n {} link set eth0 mtu {}", host, round.amount));
            hold();
            command(fmt::format("ip -n {} link set eth0 mtu {}", host, kUsualMtu));
            return;
        case Fault::datagrams:
        case Fault::memory:
        case Fault::descriptors:
        case Fault::clocks:
            return;  // the members, or Preparation, make this fault
    }
}

}  // namespace

int inject_fault(const Round& round, const std::string& cluster, Board& board) {
    try {
        const std::uint64_t before = (round.group - 1) * round.operations;
        if (!round.comes_from_outside()) {
            // The fault has lasted from the start.
        } else if (comes(board, kJoins + round.victim, round.group) &&
                   comes(board, kDone + round.victim, round.done == 0 ? 0 : before + round.done)) {
            sleep_us(round.after_us);
            strike(round, cluster, board);
        } else if (round.kills()) {
            fail("rank {} did not come to where it was to die", round.victim);
        }
        board.words[kLifted] = 1;
        return kExitFine;
    } catch (const std::exception& problem) {
        fmt::print(stderr, "     the fault itself: {}\n", problem.what());
        board.abandoned = true;
        return kExitFailed;
    }
}

// Gives a host a /dev/shm with little space, for processes that enter the host afterwards.
Preparation::Preparation(const Round& round, const std::string& cluster) {
    if (round.fault != Fault::memory) return;
    const std::string at = fmt::format("/run/mcastcoll/{}/shm/h{}", cluster, round.host_of(round.victim));
    // A file system cannot have size 0: a file fills the smallest possible one.
    const std::string size = fmt::format("size={}", round.amount == 0 ? 4096 : round.amount);
    if (mount("tmpfs", at.c_str(), "tmpfs", 0, size.c_str()) != 0) fail("no tmpfs at {}", at);
    mounted_ = at;
    if (round.amount == 0) std::ofstream(at + "/full") << std::string(4096, ' ');
}

Preparation::~Preparation() {
    if (!mounted_.empty()) umount2(mounted_.c_str(), MNT_DETACH);
}

}  // namespace mcastcoll::fabtest
